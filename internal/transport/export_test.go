package transport

import "github.com/quorate/quorate/internal/consensus"

// SpeakForTesting makes t claim a protocol version. It must come before Configure.
func (t *Transport) SpeakForTesting(version uint16) { t.version = version }

// ProtocolVersionForTesting is what New speaks.
const ProtocolVersionForTesting = protocolVersion

// The decoders, for fuzzing.
var (
	DecodeMessagesForTesting = decodeMessages
	AppendMessagesForTesting = appendMessages
	OpenFrameForTesting      = openFrame
	DecodeCallForTesting     = decodeCall
	DecodeHelloForTesting    = decodeHelloFrame
)

// SetPeers configures members without roles.
func (t *Transport) SetPeers(members []consensus.Member) {
	t.Configure(&consensus.Config{Members: members})
}
