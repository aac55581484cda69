// Package rawcalls makes calls of gRPC frame by frame, as no library does: by halves, without windows, and with metadata of any
// size. Its main type is Conn. A Conn reads all that comes, unless it is deaf, and takes nothing of it but windows.
package rawcalls
