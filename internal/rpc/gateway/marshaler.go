package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/limits/admission"
)

// marshaler is the mapping of etcd's gateway: names as in the .proto files, unset fields left out, unknown ones ignored. Large
// requests are read, and large answers written, in turns: JSON takes a processor for ten milliseconds a megabyte.
type marshaler struct {
	*runtime.JSONPb
	turns *admission.Turns
}

func newMarshaler(turns *admission.Turns) runtime.Marshaler {
	return &runtime.HTTPBodyMarshaler{Marshaler: marshaler{&runtime.JSONPb{
		MarshalOptions:   protojson.MarshalOptions{UseProtoNames: true},
		UnmarshalOptions: protojson.UnmarshalOptions{DiscardUnknown: true},
	}, turns}}
}

// Marshal implements runtime.Marshaler. The library puts blanks between fields in some builds of a program and in others not,
// so that no program relies on them; scripts of etcd's users do.
func (m marshaler) Marshal(v any) (encoded []byte, err error) {
	m.turns.Do(sizeOf(v), func() { encoded, err = m.marshal(v) })
	return encoded, err
}

// sizeOf is about how many bytes are encoded: those of a message, or of the one that a stream answers with.
func sizeOf(v any) (size int) {
	switch v := v.(type) {
	case proto.Message:
		return proto.Size(v)
	case map[string]any:
		for _, within := range v {
			size += sizeOf(within)
		}
	}
	return size
}

func (m marshaler) marshal(v any) ([]byte, error) {
	var encoded []byte
	var err error
	if message, ok := v.(proto.Message); ok {
		encoded, err = m.MarshalOptions.Marshal(message) // the library's Marshal copies once more
	} else {
		encoded, err = m.JSONPb.Marshal(v)
	}
	if err != nil || !putsBlanks() {
		return encoded, err
	}
	compact := bytes.NewBuffer(make([]byte, 0, len(encoded)))
	if err := json.Compact(compact, encoded); err != nil {
		return nil, err
	}
	return compact.Bytes(), nil
}

// putsBlanks reports whether this build is one that does.
var putsBlanks = sync.OnceValue(func() bool {
	encoded, err := protojson.Marshal(&pb.PutRequest{Key: []byte("k"), Value: []byte("v")})
	return err != nil || bytes.ContainsRune(encoded, ' ')
})

// NewDecoder implements runtime.Marshaler.
func (m marshaler) NewDecoder(r io.Reader) runtime.Decoder {
	decoder := m.JSONPb.NewDecoder(r)
	switch body := r.(type) {
	case *messages:
		return &messageDecoder{texts: json.NewDecoder(r), body: body, of: m}
	case *whole:
		return runtime.DecoderFunc(func(v any) (err error) {
			m.turns.Do(body.weight, func() { err = m.unmarshal(body, decoder, v) })
			return err
		})
	}
	return decoder
}

// unmarshal reads a message that is all there is of a body without a look for its end before, which costs more than the
// reading. The decoder says what else there is, and what is wrong with it.
func (m marshaler) unmarshal(body *whole, decoder runtime.Decoder, v any) error {
	message, ok := v.(proto.Message)
	if ok && m.UnmarshalOptions.Unmarshal(body.body, message) == nil {
		return nil
	}
	if ok {
		proto.Reset(message)
	}
	return decoder.Decode(v)
}

// messageDecoder reads a body of several messages.
type messageDecoder struct {
	texts *json.Decoder
	body  *messages
	of    marshaler
}

// Decode implements runtime.Decoder. The handlers only stop when it fails, so the reason ends the call.
func (d *messageDecoder) Decode(v any) error {
	err := d.decode(v)
	if err != nil && !errors.Is(err, io.EOF) {
		d.body.fail(err)
		return io.EOF
	}
	return err
}

// decode waits for the text of a message, and reads it when it is its turn.
func (d *messageDecoder) decode(v any) error {
	text, err := d.text()
	if err != nil {
		return err
	}
	d.of.turns.Do(len(text)+partsBytes(text), func() { err = d.of.Unmarshal(text, v) })
	return err
}

// text waits for the text of a message.
func (d *messageDecoder) text() (text json.RawMessage, err error) {
	defer d.body.done()
	read, _ := io.ReadAll(d.texts.Buffered()) // it is in memory
	if d.body.has > keptTextBytes {
		d.body.again = append(read, d.body.again...)
		d.texts, read = json.NewDecoder(d.body), d.body.again
	}
	if err := d.body.next(read); err != nil {
		return nil, err
	}
	if err := d.texts.Decode(&text); err != nil {
		return nil, err
	}
	return text, d.body.came(text)
}
