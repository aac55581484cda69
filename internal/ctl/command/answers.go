package command

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/doctor"
)

// MostAnswer bounds the bytes that a member may answer about itself.
const MostAnswer = 256 << 10

// Answers is the codec for answers of members, any of which may be hostile: two bytes of one become a message of hundreds. So
// one answer is read at a time, and only what fits the bounds stays.
type Answers struct{ turn sync.Mutex }

// Name implements encoding.Codec.
func (*Answers) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (*Answers) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", v)
	}
	return proto.Marshal(m)
}

// Unmarshal implements encoding.Codec.
func (c *Answers) Unmarshal(data []byte, v any) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	into, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	return doctor.Decode(data, into)
}
