package incoming

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// call is the context of a call, with its metadata.
type call struct {
	context.Context
	fields metadata.MD
}

type fieldsKey struct{}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (fieldsKey{}) {
		return c.fields
	}
	return c.Context.Value(key)
}

// NewContext returns a context with the metadata of a call, for this package and for gRPC's.
func NewContext(ctx context.Context, fields metadata.MD) context.Context {
	return &call{metadata.NewIncomingContext(ctx, fields), fields}
}

// First returns the first value of a field. name is lower-case.
func First(ctx context.Context, name string) (value string, found bool) {
	values := []string(nil)
	if fields, ok := ctx.Value(fieldsKey{}).(metadata.MD); ok {
		values = fields[name]
	} else {
		values = metadata.ValueFromIncomingContext(ctx, name)
	}
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}
