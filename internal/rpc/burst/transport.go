package burst

import (
	"context"
	"reflect"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// transport is the stream of a connection below a call.
type transport struct {
	framed    func(mem.BufferSlice) error // nil: by write
	write     reflect.Value               // Write(header []byte, data mem.BufferSlice, options *internal) error
	arguments [3]reflect.Value
}

// framed is a transport that says what it takes: that of package rpc/front. It takes over the reference to the messages.
type framed interface {
	SendFramed(messages mem.BufferSlice) error
}

// transportOf returns what takes framed messages for the call of a context, nil if nothing does.
func transportOf(ctx context.Context) *transport {
	stream := grpc.ServerTransportStreamFromContext(ctx)
	if stream == nil {
		return nil
	}
	if compressed, ok := stream.(interface{ SendCompress() string }); !ok || compressed.SendCompress() != "" {
		return nil // each message is compressed for itself
	}
	if ours, ok := stream.(framed); ok {
		return &transport{framed: ours.SendFramed}
	}
	write := reflect.ValueOf(stream).MethodByName("Write")
	if !write.IsValid() || !takesFrames(write.Type()) {
		return nil
	}
	t := &transport{write: write}
	t.arguments[0] = reflect.Zero(write.Type().In(0)) // the prefixes are in the data
	t.arguments[2] = reflect.New(write.Type().In(2).Elem())
	return t
}

// takesFrames reports whether a method has the shape that is expected.
func takesFrames(method reflect.Type) bool {
	return method.NumIn() == 3 && method.In(0) == reflect.TypeFor[[]byte]() &&
		method.In(1) == reflect.TypeFor[mem.BufferSlice]() &&
		method.In(2).Kind() == reflect.Pointer && method.In(2).Elem().Kind() == reflect.Struct &&
		method.NumOut() == 1 && method.Out(0) == reflect.TypeFor[error]()
}

// send writes data, and takes over the reference to it.
func (t *transport) send(data mem.BufferSlice) error {
	if t.framed != nil {
		return t.framed(data)
	}
	t.arguments[1] = reflect.ValueOf(data)
	result := t.write.Call(t.arguments[:])
	t.arguments[1] = reflect.Value{}
	data.Free()
	err, _ := result[0].Interface().(error)
	return err
}
