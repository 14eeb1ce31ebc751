"""The way out for the few arguments that a fast function leaves to C's library.

One branch tests whether any lane needs it; what it leads to is a small separate function, so that the fast code
neither grows nor keeps registers for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.compiler.codegen.math.build import DOUBLE, I1, Emitter, Value, type_text


def per_lane(e: Emitter, mask: Value, libm: str, args: Sequence[Value], fast: Value) -> Value:
    """`fast`, but in the lanes of `mask` the answer of `libm`, a function of doubles; f32 goes there and back.

    The result must be what the function returns: the branch returns by itself, so that nothing has to be kept across
    its call.
    """
    element, lanes = fast.element, e.lanes
    kind, mask_type = e.type(element), f"i{lanes}"
    e.declare(f"declare double @{libm}({', '.join(['double'] * len(args))})")
    if lanes == 1:
        taken = mask.name
        cold = _scalar_call(libm, element, [arg.name for arg in args], "%slow")
    else:
        bits = e.emit(I1, f"bitcast {e.type(I1)} {mask.name} to {mask_type}").name
        taken = e.emit(I1, f"icmp ne {mask_type} {bits}, 0").name
        symbol = f"{e.symbol}.cold"
        e.helpers.append(_cold_function(symbol, libm, element, lanes, len(args)))
        vectors = ", ".join(f"{kind} {value.name}" for value in (*args, fast))
        cold = [f"  %slow = call {kind} @{symbol}({mask_type} {bits}, {vectors})"]
    e.lines += [
        f"  br i1 {taken}, label %cold, label %done",
        "cold:",
        *cold,
        f"  ret {kind} %slow",
        "done:",
    ]
    return fast


def _scalar_call(libm: str, element: str, args: Sequence[str], result: str) -> list[str]:
    """Lines that put libm(args) into `result`."""
    if element == DOUBLE:
        return [f"  {result} = call double @{libm}({', '.join(f'double {arg}' for arg in args)})"]
    lines = [f"  %wide{i} = fpext float {arg} to double" for i, arg in enumerate(args)]
    operands = ", ".join(f"double %wide{i}" for i in range(len(args)))
    lines.append(f"  %wide = call double @{libm}({operands})")
    lines.append(f"  {result} = fptrunc double %wide to float")
    return lines


def _cold_function(symbol: str, libm: str, element: str, lanes: int, arity: int) -> str:
    """A function that replaces the lanes of a bit set, in a loop so that its code stays small.

    `optnone` keeps the time to compile it small, too.
    """
    kind = type_text(element, lanes)
    names = [*(f"x{i}" for i in range(arity)), "fast"]
    parameters = ", ".join(f"{kind} %{name}" for name in names)
    lines = [
        f"define internal {kind} @{symbol}(i{lanes} %mask, {parameters}) cold noinline optnone nounwind {{",
        "entry:",
    ]
    for name in names:
        lines += [f"  %m{name} = alloca {kind}", f"  store {kind} %{name}, ptr %m{name}"]
    lines += [
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %step ]",
        f"  %rest = phi i{lanes} [ %mask, %entry ], [ %shifted, %step ]",
        f"  %bit = trunc i{lanes} %rest to i1",
        "  br i1 %bit, label %lane, label %step",
        "lane:",
    ]
    for name in names:
        lines.append(f"  %p{name} = getelementptr {element}, ptr %m{name}, i64 %i")
    for name in names[:-1]:
        lines.append(f"  %e{name} = load {element}, ptr %p{name}")
    lines += _scalar_call(libm, element, [f"%e{name}" for name in names[:-1]], "%r")
    lines += [
        f"  store {element} %r, ptr %pfast",
        "  br label %step",
        "step:",
        f"  %shifted = lshr i{lanes} %rest, 1",
        "  %next = add i64 %i, 1",
        f"  %more = icmp ult i64 %next, {lanes}",
        "  br i1 %more, label %loop, label %end",
        "end:",
        f"  %v = load {kind}, ptr %mfast",
        f"  ret {kind} %v",
        "}",
        "",
    ]
    return "\n".join(lines)
