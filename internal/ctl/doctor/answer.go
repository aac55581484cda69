package doctor

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/doctor"
)

// mostAnswer bounds what a member may answer, in bytes.
const mostAnswer = 256 << 10

// codec reads answers of members of which any may be hostile: two bytes of one become a message of hundreds. So one answer is
// read at a time, and only what fits the bounds stays.
type codec struct{ turn sync.Mutex }

// Name implements encoding.Codec.
func (*codec) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (*codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", v)
	}
	return proto.Marshal(m)
}

// Unmarshal implements encoding.Codec.
func (c *codec) Unmarshal(data []byte, v any) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	into, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	whole := into.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(data, whole); err != nil {
		return err
	}
	proto.Reset(into)
	proto.Merge(into, doctor.Trimmed(whole)) // a copy, since the list that was cut has its room yet
	return nil
}
