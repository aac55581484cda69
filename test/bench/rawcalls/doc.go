// Package rawcalls makes calls of gRPC frame by frame, as no library does: by halves, without windows, and with metadata of any
// size. Its main type is Conn. A Conn reads all that comes, and the server may send what Dial and Allow let it.
package rawcalls
