package incoming

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/metadata"
)

// call is the context of a call, with its metadata.
type call struct {
	context.Context
	fields metadata.MD
	kept   atomic.Value
}

type callKey struct{}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// NewContext returns a context with the metadata of a call, for this package and for gRPC's.
func NewContext(ctx context.Context, fields metadata.MD) context.Context {
	return &call{Context: metadata.NewIncomingContext(ctx, fields), fields: fields}
}

// Kept is where package access keeps what it found out from the metadata of a call, nil if the context is none of NewContext.
// Calls of one connection with the same metadata share it.
func Kept(ctx context.Context) *atomic.Value {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return &c.kept
	}
	return nil
}

// First returns the first value of a field. name is lower-case.
func First(ctx context.Context, name string) (value string, found bool) {
	values := []string(nil)
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		values = c.fields[name]
	} else {
		values = metadata.ValueFromIncomingContext(ctx, name)
	}
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}
