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

// certificateRefused is what a refusal of this process's certificate means.
const certificateRefused = "it does not take the certificate of this process: --peer-cert-file needs one that its " +
	"--peer-trusted-ca-file trusts, that has not expired, and that names a host of this process"

// refusesCertificate reports whether the other side ended the handshake for this side's certificate, or for want of one. The
// server of TLS 1.3 says so after the handshake, so that gRPC tells it as an error of its own.
func refusesCertificate(err error) bool {
	_, alert, remote := strings.Cut(err.Error(), "remote error: tls: ")
	return remote && strings.Contains(alert, "certificate")
}

// plainStatus is the message of an error that may have come by gRPC, without the name of the package that it is from.
func plainStatus(err error) string {
	text := err.Error()
	if s, is := status.FromError(err); is {
		text = s.Message()
	}
	return strings.TrimPrefix(text, "member: ")
}
