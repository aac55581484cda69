package transport

// SpeakForTesting makes t claim a protocol version. It must come before SetPeers.
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
