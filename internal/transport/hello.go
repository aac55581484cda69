package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// protocolVersion is what this program speaks. A member refuses a newer one, whose frames it could misread.
const protocolVersion uint16 = 1

// streamKind says what a stream is for. It is part of the hello.
type streamKind uint8

const (
	streamNone    streamKind = 0 // a call, a snapshot
	streamOrdered streamKind = 1
	streamExpress streamKind = 2
)

// hello opens every stream and every call:
//
//	0       4         6      7         15     23   31
//	+-------+---------+------+---------+------+----+
//	| magic | version | kind | cluster | from | to |
//	+-------+---------+------+---------+------+----+
//	| epoch number    | epoch recovery    | storage |
//	+-----------------+-------------------+---------+
//	31                39                  55        71
//	+-----------------+-------------------+---------+---------------+
//	| boots           | nonce             | length  | address       |
//	+-----------------+-------------------+---------+---------------+
//	71                79                  87        88              88+length
//
// The hello of a stream is followed by one byte of bits that say what else its sender takes (canUnpack), and by the token by
// which who answers at the sender's address confirms the stream.
// In calls, and only there, zero stands for an unknown cluster or member: a joining member knows neither.
type hello struct {
	version uint16
	kind    streamKind
	to      consensus.MemberID
	claim   identity.Claim
	can     byte // bits
	token   token
}

const (
	helloMagic    = "QPT\x01"
	helloMinBytes = 88
	helloMaxBytes = helloMinBytes + maxAddressBytes
	// maxAddressBytes is how much of an address a hello tells: it decides nothing.
	maxAddressBytes = 255
	// maxHelloBytes bounds the frame of a hello, which is held while its sender is asked: a later version may say more in it.
	maxHelloBytes = 4 << 10
)

func (h hello) append(dst []byte) []byte {
	c := &h.claim
	dst = append(dst, helloMagic...)
	dst = binary.LittleEndian.AppendUint16(dst, h.version)
	dst = append(dst, byte(h.kind))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Cluster))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Member))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.to))
	dst = binary.LittleEndian.AppendUint64(dst, c.Epoch.Number)
	dst = append(dst, c.Epoch.Recovery[:]...)
	dst = append(dst, c.Storage[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, c.Life.Boots)
	dst = binary.LittleEndian.AppendUint64(dst, c.Life.Nonce)
	address := c.Address[:min(len(c.Address), maxAddressBytes)]
	return append(append(dst, byte(len(address))), address...)
}

func (h hello) frame() []byte {
	frame := append(h.append(beginFrame(make([]byte, 0, frameHeaderBytes+helloMaxBytes+1+tokenBytes), frameHello)), h.can)
	frame = append(frame, h.token[:]...)
	sealFrame(frame)
	return frame
}

func decodeHello(src []byte) (h hello, rest []byte, err error) {
	if len(src) < 6 || string(src[:len(helloMagic)]) != helloMagic {
		return hello{}, nil, fmt.Errorf("%w: no hello", ErrHandshake)
	}
	h.version = binary.LittleEndian.Uint16(src[4:])
	if err := h.checkVersion(); err != nil {
		return h, nil, err // nothing else in it can be trusted
	}
	if len(src) < helloMinBytes || len(src) < helloMinBytes+int(src[helloMinBytes-1]) {
		return hello{}, nil, fmt.Errorf("%w: short hello", ErrHandshake)
	}
	if h.kind = streamKind(src[6]); h.kind > streamExpress {
		return h, nil, fmt.Errorf("%w: a stream of kind %d", ErrNewerVersion, h.kind)
	}
	h.to = consensus.MemberID(binary.LittleEndian.Uint64(src[23:]))
	end := helloMinBytes + int(src[helloMinBytes-1])
	h.claim = identity.Claim{
		Cluster: consensus.ClusterID(binary.LittleEndian.Uint64(src[7:])),
		Member:  consensus.MemberID(binary.LittleEndian.Uint64(src[15:])),
		Epoch:   consensus.Epoch{Number: binary.LittleEndian.Uint64(src[31:]), Recovery: [16]byte(src[39:])},
		Storage: consensus.StorageID(src[55:71]),
		Life: consensus.Life{
			Boots: binary.LittleEndian.Uint64(src[71:]), Nonce: binary.LittleEndian.Uint64(src[79:]),
		},
		Address: strings.ToValidUTF8(string(src[helloMinBytes:end]), "?"),
	}
	return h, src[end:], nil
}

// decodeHelloFrame reads a frame that must be a bare hello.
func decodeHelloFrame(frame []byte) (hello, error) {
	if len(frame) > maxHelloBytes {
		return hello{}, fmt.Errorf("%w: a hello of %d bytes, which has %d at most", ErrHandshake, len(frame), maxHelloBytes)
	}
	kind, body, err := openFrame(frame)
	if err != nil {
		return hello{}, err
	}
	if kind != frameHello {
		return hello{}, fmt.Errorf("%w: frame kind %d instead of a hello", ErrHandshake, kind)
	}
	h, rest, err := decodeHello(body)
	switch {
	case err != nil:
		return h, err
	case len(rest) < 1+tokenBytes:
		return hello{}, fmt.Errorf("%w: short hello of a stream", ErrHandshake)
	}
	h.can, h.token = rest[0], token(rest[1:]) // a later build may say more after it
	return h, nil
}

// checkVersion comes first: nothing else in the hello of another version can be trusted.
func (h hello) checkVersion() error {
	switch {
	case h.version > protocolVersion:
		return fmt.Errorf("%w: %d, this member speaks %d: upgrade this member", ErrNewerVersion, h.version, protocolVersion)
	case h.version < protocolVersion:
		return fmt.Errorf("%w: there is no version %d of the protocol", ErrHandshake, h.version)
	}
	return nil
}

// check is what a listening member demands of a stream before it looks at who it is: it is meant for us.
func (h hello) check(self consensus.MemberID) error {
	if err := identity.Addressed(h.to, self); err != nil {
		return fmt.Errorf("%w: %w", ErrWrongMember, err)
	}
	return nil
}

// checkAnswer is what a dialling member demands of the hello that comes back, before it looks at who it is.
func (h hello) checkAnswer(sent hello) error {
	if h.claim.Member != sent.to && h.claim.Cluster == sent.claim.Cluster {
		return fmt.Errorf("%w: it is %s, wanted %s", ErrWrongMember, h.claim.Member, sent.to)
	}
	return nil
}

// refusal turns a failed check into what the other side sees.
func refusal(err error) error {
	var named *identity.Refusal
	if errors.As(err, &named) {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	reason := identity.WrongMember
	if errors.Is(err, ErrNewerVersion) {
		reason = identity.NewerVersion
	}
	return status.Error(codes.FailedPrecondition, (&identity.Refusal{Reason: reason, Text: err.Error()}).Error())
}

// isRefusal reports whether err is the handshake failing, on either side, rather than the connection.
func isRefusal(err error) bool {
	var named *identity.Refusal
	return status.Code(err) == codes.FailedPrecondition || errors.As(err, &named) ||
		errors.Is(err, ErrNewerVersion) || errors.Is(err, ErrWrongMember) || errors.Is(err, ErrHandshake)
}
