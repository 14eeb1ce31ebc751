"""Structured loops as LLVM basic blocks, with code motion by construction.

Every open loop is a `Scope` with its own list of lines. An instruction goes to the innermost scope that binds a
variable it depends on, so whatever a loop does not change stands before it, and no pass has to find that out. A scope's
lines are copied into its parent's when it closes; until then both grow side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from treadle.compiler.codegen.target import Target
from treadle.compiler.codegen.text import FunctionBuilder
from treadle.compiler.loops.ir import Var


class Scope:
    """The body of a loop that is being written.

    Attributes:
      bits: the dependence bits that this scope binds.
      code: its lines so far; they may hold whole inner loops.
      label: the basic block that the last line belongs to.
      keys: what was remembered here and must be forgotten when the scope closes.
    """

    __slots__ = ("bits", "code", "keys", "label")

    def __init__(self, bits: int, label: str):
        self.bits = bits
        self.code: list[str] = []
        self.label = label
        self.keys: list[Hashable] = []


class ScopedBuilder:
    """A FunctionBuilder with a stack of scopes and a memory of what was emitted.

    Attributes:
      binding: the current value of each loop variable: a register, or a number where it is known.
      memo: results of emitted nodes and index sums; entries live as long as the scope their code is in.
    """

    def __init__(self, target: Target):
        self.target = target
        self.fb = FunctionBuilder(target)
        self.scopes: list[Scope] = [Scope(-1, "%entry")]
        self.fb.code = self.scopes[0].code
        self.binding: dict[Var, str | int] = {}
        self.memo: dict[Hashable, str] = {}
        self._bits: dict[Var, int] = {}
        self._next_bit = 1

    def new_bit(self) -> int:
        """A fresh dependence bit."""
        bit = self._next_bit
        self._next_bit <<= 1
        return bit

    def bit(self, var: Var) -> int:
        """The dependence bit of a variable."""
        found = self._bits.get(var)
        if found is None:
            found = self._bits[var] = self.new_bit()
        return found

    def scope_of(self, deps: int) -> Scope:
        """The innermost scope that binds one of `deps`; the function's entry when there is none."""
        for scope in reversed(self.scopes):
            if scope.bits & deps:
                return scope
        return self.scopes[0]

    def remember(self, scope: Scope, key: Hashable, value: str) -> str:
        self.memo[key] = value
        scope.keys.append(key)
        return value

    def push(self, bits: int, label: str | None = None) -> Scope:
        scope = Scope(bits, label or self.scopes[-1].label)
        self.scopes.append(scope)
        self.fb.code = scope.code
        return scope

    def _pop(self) -> Scope:
        scope = self.scopes.pop()
        for key in scope.keys:
            self.memo.pop(key, None)
        self.fb.code = self.scopes[-1].code
        return scope

    def pop_straight(self) -> None:
        """Closes a scope that is no loop: its code follows its parent's."""
        scope = self._pop()
        self.scopes[-1].code.extend(scope.code)
        self.scopes[-1].label = scope.label

    def loop(
        self,
        var: Var,
        start: str | int,
        stop: str | int,
        step: int,
        carried: list[tuple[str, str]],
        body: Callable[[list[str]], list[str]],
    ) -> list[str]:
        """Writes `for var in range(start, stop, step)` and returns the carried values after it.

        With numbers as bounds the loop must run at least once; one that runs exactly once becomes straight code. With
        registers it may run zero times and carries nothing. `carried` holds (type, initial value); `body` gets the
        values of an iteration and returns those of the next.
        """
        fb = self.fb
        if isinstance(start, int) and isinstance(stop, int):
            if start + step >= stop:
                self.push(self.bit(var))
                self.binding[var] = start
                results = body([value for _, value in carried])
                self.pop_straight()
                return results
            return self._counted(var, start, stop, step, carried, body)
        assert not carried
        head, inside, done, index = fb.fresh("head"), fb.fresh("body"), fb.fresh("done"), fb.fresh("i")
        self.push(self.bit(var), inside)
        counter = self.binding[var] = self._opaque(index)
        body([])
        scope = self._pop()
        parent = self.scopes[-1]
        after = fb.fresh("i")
        parent.code += [
            f"  br label {head}",
            f"{head[1:]}:",
            f"  {index} = phi i64 [ {start}, {parent.label} ], [ {after}, {scope.label} ]",
            f"  {index}.more = icmp slt i64 {index}, {stop}",
            f"  br i1 {index}.more, label {inside}, label {done}",
            f"{inside[1:]}:",
            *scope.code,
            f"  {after} = add nsw i64 {counter}, {step}",
            f"  br label {head}",
            f"{done[1:]}:",
        ]
        parent.label = done
        return []

    def _opaque(self, index: str) -> str:
        """The same number, of which LLVM does not know that it counts.

        Otherwise strength reduction would weigh every address of every loop for a quarter of the whole compile, and
        find what we wrote: a base for each array, and one counter that scales for free.
        """
        return self.fb.call("i64", "llvm.expect.i64", [("i64", index), ("i64", "0")])

    def once(self, var: Var, start: str, stop: str, body: Callable[[], object]) -> None:
        """Writes `if start < stop: body` with `var` at `start`: a loop known to run at most once."""
        fb = self.fb
        inside, done = fb.fresh("body"), fb.fresh("done")
        self.push(self.bit(var), inside)
        self.binding[var] = start
        body()
        scope = self._pop()
        parent = self.scopes[-1]
        flag = fb.fresh("i")
        parent.code += [
            f"  {flag} = icmp slt i64 {start}, {stop}",
            f"  br i1 {flag}, label {inside}, label {done}",
            f"{inside[1:]}:",
            *scope.code,
            f"  br label {done}",
            f"{done[1:]}:",
        ]
        parent.label = done

    def _counted(
        self,
        var: Var,
        start: int,
        stop: int,
        step: int,
        carried: list[tuple[str, str]],
        body: Callable[[list[str]], list[str]],
    ) -> list[str]:
        fb = self.fb
        head, done, index = fb.fresh("loop"), fb.fresh("done"), fb.fresh("i")
        names = [fb.fresh("c") for _ in carried]
        self.push(self.bit(var), head)
        counter = self.binding[var] = self._opaque(index)
        results = body(names)
        scope = self._pop()
        parent = self.scopes[-1]
        after = fb.fresh("i")
        parent.code += [
            f"  br label {head}",
            f"{head[1:]}:",
            f"  {index} = phi i64 [ {start}, {parent.label} ], [ {after}, {scope.label} ]",
        ]
        for name, (ty, first), result in zip(names, carried, results, strict=True):
            parent.code.append(f"  {name} = phi {ty} [ {first}, {parent.label} ], [ {result}, {scope.label} ]")
        parent.code += scope.code
        parent.code += [
            f"  {after} = add nuw nsw i64 {counter}, {step}",
            f"  {index}.more = icmp slt i64 {after}, {stop}",
            f"  br i1 {index}.more, label {head}, label {done}",
            f"{done[1:]}:",
        ]
        parent.label = done
        return results
