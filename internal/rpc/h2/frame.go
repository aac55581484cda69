package h2

import (
	"encoding/binary"
	"fmt"
)

// Types of frames (RFC 9113, section 6).
const (
	typeData         = 0
	typeHeaders      = 1
	typePriority     = 2
	typeReset        = 3
	typeSettings     = 4
	typePushPromise  = 5
	typePing         = 6
	typeGoAway       = 7
	typeWindowUpdate = 8
	typeContinuation = 9
)

const (
	flagAck        = 0x1
	flagEndStream  = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

const (
	frameHeaderBytes = 9
	// maxFrameBytes is the largest payload, of ours and of the client's (SETTINGS_MAX_FRAME_SIZE, the least there is).
	maxFrameBytes = 16 << 10
	maxWindow     = 1<<31 - 1
	maxStreamID   = 1<<31 - 1
	// defaultWindow is what either side may send until it hears otherwise.
	defaultWindow = 65535
)

// Code is why a stream or a connection ends (RFC 9113, section 7).
type Code uint32

// The codes.
const (
	NoError          Code = 0
	ProtocolError    Code = 1
	FlowControlError Code = 3
	StreamClosed     Code = 5
	FrameSizeError   Code = 6
	RefusedStream    Code = 7
	Cancel           Code = 8
	CompressionError Code = 9
	EnhanceYourCalm  Code = 11
)

// connError ends a connection.
type connError struct {
	code Code
	why  string
}

func (e connError) Error() string { return fmt.Sprintf("h2: %s (code %d)", e.why, e.code) }

func broken(code Code, why string) error { return connError{code, why} }

// frame is one as it came. The payload is valid until the next read.
type frame struct {
	kind    byte
	flags   byte
	stream  uint32
	payload []byte
}

func (f *frame) has(flag byte) bool { return f.flags&flag != 0 }

// nextFrame takes a frame off p; used is zero if it is not there in full.
func nextFrame(p []byte) (f frame, used int, err error) {
	if len(p) < frameHeaderBytes {
		return frame{}, 0, nil
	}
	length := int(p[0])<<16 | int(p[1])<<8 | int(p[2])
	if length > maxFrameBytes {
		return frame{}, 0, broken(FrameSizeError, "a frame is larger than allowed")
	}
	used = frameHeaderBytes + length
	if len(p) < used {
		return frame{}, 0, nil
	}
	return frame{kind: p[3], flags: p[4], stream: binary.BigEndian.Uint32(p[5:]) & maxStreamID,
		payload: p[frameHeaderBytes:used:used]}, used, nil
}

// unpad takes the padding off a DATA or HEADERS frame.
func (f *frame) unpad() ([]byte, error) {
	p := f.payload
	if !f.has(flagPadded) {
		return p, nil
	}
	if len(p) == 0 {
		return nil, broken(FrameSizeError, "a padded frame without a length of the padding")
	}
	padding := int(p[0])
	if padding >= len(p) {
		return nil, broken(ProtocolError, "the padding is as long as the frame")
	}
	return p[1 : len(p)-padding], nil
}

func appendHeader(dst []byte, length int, kind, flags byte, stream uint32) []byte {
	return append(dst, byte(length>>16), byte(length>>8), byte(length), kind, flags,
		byte(stream>>24), byte(stream>>16), byte(stream>>8), byte(stream))
}

// setLength puts the length of the payload into the header of a frame.
func setLength(frame []byte, length int) {
	frame[0], frame[1], frame[2] = byte(length>>16), byte(length>>8), byte(length)
}

func appendReset(dst []byte, stream uint32, code Code) []byte {
	return binary.BigEndian.AppendUint32(appendHeader(dst, 4, typeReset, 0, stream), uint32(code))
}

func appendWindowUpdate(dst []byte, stream, increment uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHeader(dst, 4, typeWindowUpdate, 0, stream), increment)
}

func appendPing(dst []byte, flags byte, data []byte) []byte {
	return append(appendHeader(dst, len(data), typePing, flags, 0), data...)
}

func appendGoAway(dst []byte, last uint32, code Code, why string) []byte {
	dst = appendHeader(dst, 8+len(why), typeGoAway, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, last)
	dst = binary.BigEndian.AppendUint32(dst, uint32(code))
	return append(dst, why...)
}

// Settings that we send, or that matter to us.
const (
	settingTableSize     = 1
	settingPush          = 2
	settingMaxStreams    = 3
	settingWindow        = 4
	settingMaxFrame      = 5
	settingMaxHeaderList = 6
)

func appendSetting(dst []byte, id uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(dst, id), value)
}
