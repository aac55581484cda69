package transport

import (
	"context"
	"encoding/binary"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// SpeakForTesting makes t claim a protocol version. It must come before Configure.
func (t *Transport) SpeakForTesting(version uint16) { t.version = version }

// ProtocolVersionForTesting is what New speaks.
const ProtocolVersionForTesting = protocolVersion

// The decoders, for fuzzing.
var (
	DecodeMessagesForTesting = decodeMessages
	OpenFrameForTesting      = openFrame
	DecodeCallForTesting     = decodeCall
	DecodeHelloForTesting    = decodeHelloFrame
)

// AppendMessagesForTesting makes a frame.
func AppendMessagesForTesting(dst []byte, messages []consensus.Message) []byte {
	frame, _ := appendMessages(dst, messages)
	return frame
}

// SetPeers configures members without roles.
func (t *Transport) SetPeers(members []consensus.Member) {
	t.Configure(&consensus.Config{Members: members})
}

// Confirmed asks for a stream in the name of a peer that came without a token.
func (t *Transport) Confirmed(id consensus.MemberID) bool {
	return t.peer(id).confirmed(context.Background(), &token{})
}

// CallAsForTesting is CallURL in the name of a member.
func CallAsForTesting(ctx context.Context, o Options, url, method string, body []byte) ([]byte, error) {
	o.setDefaults()
	return callURL(ctx, &o, hello{version: protocolVersion, claim: o.Self}, url, method, body, 1<<20)
}

// CallMessageForTesting is a message of gRPC with a call that has no body.
func CallMessageForTesting(c identity.Claim, method string) []byte {
	frame := hello{version: protocolVersion, claim: c}.append(beginFrame(nil, frameCall))
	frame = append(binary.AppendUvarint(frame, uint64(len(method))), method...)
	sealFrame(frame)
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(frame))), frame...)
}

// HelloMessageForTesting is a message of gRPC with the hello of a stream to member to.
func HelloMessageForTesting(c identity.Claim, to consensus.MemberID) []byte {
	frame := hello{version: protocolVersion, kind: streamOrdered, to: to, claim: c}.frame()
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(frame))), frame...)
}
