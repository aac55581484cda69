package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// maxParts bounds the messages within a message that the protobuf library reads, and what its lists have of strings: two
	// bytes make a hundred in memory, and they are read before the server has looked which user sends them.
	maxParts = 65_536
	// countedBytes is the size from which on a message may have too many.
	countedBytes = 2 * maxParts
	// partBytes is about what a part takes in memory beside its strings.
	partBytes = 112
	// fewPartsBytes is the size up to which the parts of a message are not counted.
	fewPartsBytes = 512
)

var errTooManyParts = fmt.Errorf("quorate: a message has more than %d parts: send several smaller ones", maxParts)

// CheckParts refuses an encoded message that has more parts than one may have: 65,536 messages, and strings of lists, within
// messages.
func CheckParts(src []byte, m proto.Message) error {
	left := maxParts
	if len(src) > countedBytes && tooMany(src, m.ProtoReflect().Descriptor(), &left) {
		return errTooManyParts
	}
	return nil
}

// countParts returns how many parts an encoded message has, up to one more than it may have. Those of a small message do not
// count.
func countParts(src []byte, m proto.Message) int {
	left := maxParts
	if len(src) > fewPartsBytes {
		tooMany(src, m.ProtoReflect().Descriptor(), &left)
	}
	return maxParts - left
}

// tooMany counts down the parts of a message. It leaves malformed parts to the decoder of the message.
func tooMany(src []byte, of protoreflect.MessageDescriptor, left *int) bool {
	for len(src) > 0 {
		number, kind, n := protowire.ConsumeTag(src)
		if n < 0 {
			return false
		}
		src = src[n:]
		if n = protowire.ConsumeFieldValue(number, kind, src); n < 0 {
			return false
		}
		value := src[:n]
		src = src[n:]
		field := of.Fields().ByNumber(number)
		if kind != protowire.BytesType || field == nil {
			continue
		}
		if strings := field.IsList() && field.Kind() == protoreflect.StringKind; field.Message() == nil && !strings {
			continue
		}
		if *left--; *left < 0 {
			return true
		}
		if field.Message() == nil {
			continue
		}
		if within, _ := protowire.ConsumeBytes(value); tooMany(within, field.Message(), left) {
			return true
		}
	}
	return false
}
