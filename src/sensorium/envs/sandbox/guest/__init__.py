"""The supervisor inside a sandbox: process 1 there. Starts programs, watches limits, ends them, opens files.

These files are copied into the sandbox and run by its own interpreter (`python -I -S`), so they use the
standard library and each other only. They obey one unix socket, the host's; when that closes, the supervisor
ends, and with process 1 the kernel ends everything else.

Untrusted programs cannot reach it: it ignores their signals (process 1), cannot be traced (not dumpable) and,
where the host is root, has another user id. It answers file requests by opening the file, never through a
link, and passing the descriptor to the host.
"""
