module { // ÿþ
}