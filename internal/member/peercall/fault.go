package peercall

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Fault is how one error is encoded between members.
type Fault struct {
	Code  byte // on the wire, from 1 on; never used for another one
	Final bool // asking again changes nothing
	// encode returns what is sent about err, and false if err is another one; decode is the other way round.
	encode func(err error) ([]byte, bool)
	decode func(src []byte) (error, error)
}

// Sentinel encodes an error that wraps one value. Its whole text is sent.
func Sentinel(code byte, final bool, sentinel error) Fault {
	return Fault{
		Code: code, Final: final,
		encode: func(err error) ([]byte, bool) {
			if !errors.Is(err, sentinel) {
				return nil, false
			}
			return []byte(err.Error()), true
		},
		decode: func(src []byte) (error, error) {
			if text := string(src); text != sentinel.Error() {
				return &toldError{text: text, is: sentinel}, nil
			}
			return sentinel, nil
		},
	}
}

// Detailed encodes a final error with fields: a pointer to T, as JSON.
func Detailed[T any, E interface {
	*T
	error
}](code byte) Fault {
	codec := JSON[T]()
	return Fault{
		Code: code, Final: true,
		encode: func(err error) ([]byte, bool) {
			var found E
			if !errors.As(err, &found) {
				return nil, false
			}
			text, err := codec.Append(nil, *(*T)(found))
			return text, err == nil
		},
		decode: func(src []byte) (error, error) {
			found, err := codec.Decode(src)
			return E(&found), err
		},
	}
}

// toldError is an error that another member answered, with its text.
type toldError struct {
	text string
	is   error
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.is }

// Faults is the table of errors. The first row that fits an error encodes it.
type Faults []Fault

// append appends err, or reports that the table does not have it.
func (f Faults) append(dst []byte, err error) ([]byte, bool) {
	for i := range f {
		if about, found := f[i].encode(err); found {
			return append(append(dst, f[i].Code), about...), true
		}
	}
	return dst, false
}

// decode returns the error of a code.
func (f Faults) decode(code byte, about []byte) error {
	for i := range f {
		if f[i].Code != code {
			continue
		}
		told, err := f[i].decode(about)
		if err != nil {
			return malformed(err)
		}
		return told
	}
	return &toldError{text: string(about), is: errors.ErrUnsupported} // the leader is newer
}

// final reports whether asking again would change nothing.
func (f Faults) final(err error) bool {
	if err == nil || errors.Is(err, errors.ErrUnsupported) {
		return true
	}
	for i := range f {
		if _, found := f[i].encode(err); found {
			return f[i].Final
		}
	}
	return misunderstood(err)
}

// misunderstood reports whether an error says that members do not understand each other: they are of different versions. A
// member answers Unimplemented to a method that it does not know, and InvalidArgument to a question that it cannot decode; an
// answer that cannot be decoded is such an error, too.
func misunderstood(err error) bool {
	code := status.Code(err)
	return code == codes.Unimplemented || code == codes.InvalidArgument
}

// callError is why a member could not be asked. Its grpc code is about that call, and says nothing to the caller that asked
// this member.
type callError struct{ err error }

func (e *callError) Error() string { return e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// GRPCStatus implements what package status asks of an error that has a code.
func (e *callError) GRPCStatus() *status.Status { return status.Convert(e.err) }
