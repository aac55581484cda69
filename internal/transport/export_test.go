package transport

import (
	"context"

	"github.com/quorate/quorate/internal/consensus"
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

// SetOlder makes a peer one that has answered as a build without tokens does, or not.
func (t *Transport) SetOlder(id consensus.MemberID, older bool) { t.peer(id).older.Store(older) }

// Confirmed asks for a stream in the name of a peer that came without a token.
func (t *Transport) Confirmed(id consensus.MemberID) bool {
	return t.peer(id).confirmed(context.Background(), &token{})
}
