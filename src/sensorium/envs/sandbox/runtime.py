"""What of the host a program needs to run Python: the interpreter, its packages and the shared libraries."""

import functools
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sensorium.envs.sandbox.base import SandboxError

_QUESTION = """
import json, site, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({
    "prefixes": [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix],
    "packages": sorted({paths["purelib"], paths["platlib"], *site.getsitepackages()}),
    "executable": sys.executable,
}))
"""

SYSTEM_PLACES = ("/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
ETC_FILES = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts", "localtime", "mime.types")
"""Of /etc only what programs need to start and draw; users, hosts and secrets of the machine stay out."""
_SYSTEM_PREFIXES = ("/", "/usr", "/usr/local")


@dataclass(frozen=True)
class Runtime:
    """An interpreter and where its parts lie; the same paths are used inside."""

    executable: str
    prefixes: tuple[str, ...]
    """Directories to show read-only, outermost first; none lies in /usr."""
    packages: tuple[str, ...]
    """Directories of installed packages."""

    def places_of(self, package: str) -> list[str]:
        """Where an importable package of this interpreter lies: directories and files that exist."""
        found = []
        for directory in self.packages:
            for name in (package, f"{package}.py"):
                path = Path(directory, *name.split("/"))
                if path.exists():
                    found.append(str(path))
            found += map(str, sorted(Path(directory, "__pycache__").glob(f"{package}.*.pyc")))
        return found


@functools.lru_cache(maxsize=32)
def find_runtime(python: str) -> Runtime:
    """Ask an interpreter where its parts lie.

    Raises:
        SandboxError: It does not run.
    """
    try:
        done = subprocess.run(
            [python, "-I", "-c", _QUESTION], capture_output=True, check=True, timeout=60, text=True
        )
        facts = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise SandboxError(
            f"The interpreter {python!r} of the sandbox does not run: {error}. Name a Python 3.9+."
        ) from error
    prefixes = {path for prefix in facts["prefixes"] for path in (prefix, str(Path(prefix).resolve()))}
    # A virtual environment's interpreter is a link, perhaps to a directory that is none of the prefixes.
    prefixes.add(str(Path(facts["executable"]).resolve().parent.parent))
    shown = sorted(path for path in prefixes if not _is_system(path))
    return Runtime(facts["executable"], tuple(shown), tuple(facts["packages"]))


def _is_system(path: str) -> bool:
    return path in _SYSTEM_PREFIXES or path.startswith("/usr/")
