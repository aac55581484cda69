package server

import (
	"strings"

	"google.golang.org/grpc/status"
)

// mismatchedTLS reports whether the connection failed for what either side shows or demands. The errors come as texts: the
// dialling is below gRPC.
func mismatchedTLS(err error) bool {
	text := err.Error()
	return strings.Contains(text, "TLS handshake with") &&
		(strings.Contains(text, "does not look like a TLS handshake") || strings.Contains(text, "certificate"))
}

// plainStatus is the message of an error that may have come by gRPC, without the name of the package that it is from.
func plainStatus(err error) string {
	text := err.Error()
	if s, is := status.FromError(err); is {
		text = s.Message()
	}
	return strings.TrimPrefix(text, "member: ")
}
