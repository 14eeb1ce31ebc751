"""The tensor IR: types, ops and regions."""
