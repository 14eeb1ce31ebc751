"""The rules by which versions go together: from facts to findings, and what to do about each."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from treadle.versions import history, library, measure, releases, tested
from treadle.versions.api_version import ApiVersion

# jaxlib's own rule, measured: it refuses a plugin of another major version, or of a minor one below this.
OLDEST_MINOR = 29

_SHOWN = 6


class Verdict(enum.IntEnum):
    """What all findings come to; the number is the exit code."""

    COMPATIBLE = 0
    SKEW = 3
    INCOMPATIBLE = 4
    UNKNOWN = 5

    @property
    def text(self) -> str:
        return _VERDICTS[self]


_VERDICTS = {
    Verdict.COMPATIBLE: "compatible",
    Verdict.SKEW: "works with skew",
    Verdict.INCOMPATIBLE: "incompatible",
    Verdict.UNKNOWN: "cannot tell",
}
# The worst first: what is known to fail says more than what is not known.
WORST_FIRST = (Verdict.INCOMPATIBLE, Verdict.UNKNOWN, Verdict.SKEW)


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
      verdict: what it makes of the whole.
      text: what is wrong.
      action: what to do about it; empty if nothing has to be done.
    """

    verdict: Verdict
    text: str
    action: str = ""


BUILD = "build the plugin with `./bazelw build //plugin:treadle_pjrt.so`, or pip install treadle"
BUILD_PROBE = "build the probe with `./bazelw build //plugin/probe:treadle_probe.so`, or install Treadle's wheel"


def _install(package: str) -> str:
    return f"pip install '{package}{tested.supported().accepted[package]}'"


def packages(environment: measure.Environment) -> Iterator[Finding]:
    """What is wrong with the versions of Python and of the packages."""
    known = tested.supported()
    short = ".".join(environment.python.split(".")[:2])
    if short not in known.pythons:
        yield Finding(
            Verdict.SKEW,
            f"Python {environment.python} is outside {known.pythons[0]} - {known.pythons[-1]}",
            "use one of these",
        )
    if environment.jaxlib_problem:
        yield Finding(
            Verdict.INCOMPATIBLE,
            f"jaxlib {environment.jaxlib} is installed and cannot be imported: {environment.jaxlib_problem}",
            f"pip install --force-reinstall jaxlib=={environment.jaxlib}",
        )
    for package, version in environment.packages.items():
        accepted = known.accepted[package]
        if version is None:
            yield Finding(Verdict.UNKNOWN, f"{package} is not installed", _install(package))
        elif version not in accepted:
            yield Finding(Verdict.SKEW, f"{package} {version} is outside {accepted}", _install(package))
        elif not known.is_tested(package, version):
            pair = known.pair_for(short)
            yield Finding(
                Verdict.SKEW,
                f"{package} {version} is within {accepted}, but was not tested; {known.tested_text(package)} were",
                f"nothing, or pip install jax=={pair[0]} jaxlib=={pair[1]}" if pair else "",
            )


def plugin_pairing(
    plugin: library.Plugin,
    environment: measure.Environment,
    framework: measure.Framework,
    pinned: ApiVersion | None,
) -> Iterator[Finding]:
    """Whether a plugin and a jaxlib go together.

    Args:
      plugin: what the plugin says of itself.
      environment: what is installed.
      framework: the PJRT version of the jaxlib.
      pinned: that of the headers that the plugin should have been built with; None if they are not known.
    """
    if environment.jaxlib is None:
        pass  # `packages` says so
    elif framework.pjrt is None:
        yield Finding(
            Verdict.UNKNOWN,
            f"the PJRT version of jaxlib {environment.jaxlib} is not known: {framework.note}",
            BUILD_PROBE,
        )
    else:
        yield from _judge_pjrt(plugin, environment, framework.pjrt)
    if pinned is not None and pinned != plugin.pjrt:
        yield Finding(
            Verdict.SKEW,
            f"the plugin was built with headers of PJRT {plugin.pjrt}, the pinned ones are {pinned}",
            BUILD,
        )
    if plugin.missing:
        yield Finding(
            Verdict.SKEW,
            f"{len(plugin.missing)} functions of the plugin's table are null and crash the process when they are "
            f"called: {_list(plugin.missing)}",
        )
    if plugin.attributes_problem:
        yield Finding(Verdict.SKEW, f"the plugin does not tell its attributes: {plugin.attributes_problem}")
    yield from _judge_ffi(plugin, environment)
    yield from _judge_stablehlo(plugin, environment)


def _judge_pjrt(plugin: library.Plugin, environment: measure.Environment, pjrt: ApiVersion) -> Iterator[Finding]:
    jaxlib = f"jaxlib {environment.jaxlib}"
    if plugin.pjrt.major != pjrt.major:
        yield Finding(
            Verdict.INCOMPATIBLE,
            f"the plugin speaks PJRT {plugin.pjrt} and {jaxlib} {pjrt}: another major version, which jaxlib refuses",
            remedy(plugin.pjrt),
        )
    elif plugin.pjrt.minor < OLDEST_MINOR:
        yield Finding(
            Verdict.INCOMPATIBLE,
            f"the plugin speaks PJRT {plugin.pjrt}, and jaxlib refuses what is below 0.{OLDEST_MINOR}",
            remedy(plugin.pjrt),
        )
    elif plugin.pjrt != pjrt:
        known = tested.supported()
        proven = environment.jaxlib and known.is_tested("jaxlib", environment.jaxlib)
        yield Finding(
            Verdict.SKEW,
            _skew_text(plugin, jaxlib, pjrt),
            f"nothing: {jaxlib} is one of those that this Treadle is tested with"
            if proven and str(plugin.pjrt) == known.pjrt
            else f"build with headers of PJRT {pjrt} (--override_repository=xla_headers=DIR), or {_install('jaxlib')}",
        )


def remedy(plugin: ApiVersion) -> str:
    """What to do about a plugin that jaxlib refuses."""
    if str(plugin) == tested.supported().pjrt:  # the plugin is right, so it is jaxlib that is not
        return _install("jaxlib")
    return "pip install --force-reinstall treadle (this file is not its plugin), or " + BUILD


def _skew_text(plugin: library.Plugin, jaxlib: str, pjrt: ApiVersion) -> str:
    added = history.between(plugin.pjrt, pjrt)
    parts = [f"{version} added {_list(names)}" for version, names in added.items() if names is not None]
    if unknown := [version for version, names in added.items() if names is None]:
        parts.append(f"what {tested.joined(unknown)} added is unknown, since this Treadle has not seen such a header")
    end = "jaxlib may use it, and the plugin has none of it" if pjrt > plugin.pjrt else "jaxlib uses none of it"
    return f"the plugin speaks PJRT {plugin.pjrt} and {jaxlib} {pjrt}: {'; '.join(parts)}; {end}"


def _judge_ffi(plugin: library.Plugin, environment: measure.Environment) -> Iterator[Finding]:
    ours = ApiVersion.parse(tested.supported().ffi)
    if "FFI" in plugin.extensions and environment.ffi is not None and environment.ffi != ours:
        yield Finding(
            Verdict.INCOMPATIBLE if environment.ffi.major != ours.major else Verdict.SKEW,
            f"the plugin's FFI extension is XLA FFI {ours}, jaxlib's handlers are built for {environment.ffi}",
        )


def _judge_stablehlo(plugin: library.Plugin, environment: measure.Environment) -> Iterator[Finding]:
    minimum, current = plugin.stablehlo("minimum"), plugin.stablehlo("current")
    if environment.stablehlo is None or minimum is None or current is None:
        return
    jaxlib_current, jaxlib_minimum = environment.stablehlo
    if releases.order(jaxlib_current) < releases.order(minimum):
        yield Finding(
            Verdict.INCOMPATIBLE,
            f"jaxlib writes StableHLO {jaxlib_current}, the plugin reads from {minimum} on",
            _install("jaxlib"),
        )
    if releases.order(current) < releases.order(jaxlib_minimum):
        yield Finding(
            Verdict.INCOMPATIBLE,
            f"the plugin reads StableHLO up to {current}, jaxlib writes from {jaxlib_minimum} on",
            "pip install --upgrade treadle",
        )


def _list(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
