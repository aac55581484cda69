package rpc

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refusedError is the refusal by a limit of a call that its caller may make.
type refusedError struct{ why *status.Status }

func refusedf(code codes.Code, format string, args ...any) error {
	return &refusedError{status.Newf(code, format, args...)}
}

// Error implements error.
func (e *refusedError) Error() string { return e.why.Err().Error() }

// GRPCStatus is the form on the wire.
func (e *refusedError) GRPCStatus() *status.Status { return e.why }
