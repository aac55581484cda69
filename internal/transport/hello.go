package transport

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
)

// protocolVersion is what this program speaks. A member refuses a newer one, whose frames it could misread; an older
// one is the newer member's duty to serve.
const protocolVersion uint16 = 1

// laneKind says what a stream is for. It is part of the hello.
type laneKind uint8

const (
	laneNone    laneKind = 0 // a call, a snapshot
	laneOrdered laneKind = 1
	laneExpress laneKind = 2
)

// hello opens every stream and every call:
//
//	0       4         6      7         15     23   31
//	+-------+---------+------+---------+------+----+
//	| magic | version | lane | cluster | from | to |
//	+-------+---------+------+---------+------+----+
//
// In calls, and only there, zero stands for an unknown cluster or member: a joining member knows neither.
type hello struct {
	version  uint16
	lane     laneKind
	cluster  consensus.ClusterID
	from, to consensus.MemberID
}

const (
	helloMagic = "QPT\x01"
	helloBytes = 31
)

func (h hello) append(dst []byte) []byte {
	dst = append(dst, helloMagic...)
	dst = binary.LittleEndian.AppendUint16(dst, h.version)
	dst = append(dst, byte(h.lane))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.cluster))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.from))
	return binary.LittleEndian.AppendUint64(dst, uint64(h.to))
}

func (h hello) frame() []byte {
	frame := h.append(beginFrame(make([]byte, 0, frameHeaderBytes+helloBytes), frameHello))
	sealFrame(frame)
	return frame
}

func decodeHello(src []byte) (h hello, rest []byte, err error) {
	if len(src) < helloBytes || string(src[:len(helloMagic)]) != helloMagic {
		return hello{}, nil, fmt.Errorf("%w: no hello", ErrHandshake)
	}
	h.version = binary.LittleEndian.Uint16(src[4:])
	h.lane = laneKind(src[6])
	h.cluster = consensus.ClusterID(binary.LittleEndian.Uint64(src[7:]))
	h.from = consensus.MemberID(binary.LittleEndian.Uint64(src[15:]))
	h.to = consensus.MemberID(binary.LittleEndian.Uint64(src[23:]))
	return h, src[helloBytes:], nil
}

// decodeHelloFrame reads a frame that must be a bare hello.
func decodeHelloFrame(frame []byte) (hello, error) {
	kind, body, err := openFrame(frame)
	if err != nil {
		return hello{}, err
	}
	if kind != frameHello {
		return hello{}, fmt.Errorf("%w: frame kind %d instead of a hello", ErrHandshake, kind)
	}
	h, _, err := decodeHello(body)
	return h, err
}

// checkVersion comes first: nothing else in the hello of a newer version can be trusted.
func (h hello) checkVersion() error {
	if h.version > protocolVersion {
		return fmt.Errorf("%w: %d, this member speaks %d", ErrNewerVersion, h.version, protocolVersion)
	}
	return nil
}

// check is what a listening member demands of a stream: everything is known and meant for us.
func (h hello) check(self consensus.MemberID, cluster consensus.ClusterID) error {
	if err := h.checkCall(self, cluster); err != nil {
		return err
	}
	if h.cluster != cluster {
		return fmt.Errorf("%w: it names none, this member is of %s", ErrForeignCluster, cluster)
	}
	if h.to != self {
		return fmt.Errorf("%w: it wants anybody, this member is %s", ErrWrongMember, self)
	}
	if h.from == consensus.NoMember || h.from == self {
		return fmt.Errorf("%w: it calls itself %s", ErrWrongMember, h.from)
	}
	return nil
}

// checkCall is the same for a call, in which the unknown is allowed.
func (h hello) checkCall(self consensus.MemberID, cluster consensus.ClusterID) error {
	if err := h.checkVersion(); err != nil {
		return err
	}
	if h.cluster != 0 && h.cluster != cluster {
		return fmt.Errorf("%w: it is of %s, this member of %s", ErrForeignCluster, h.cluster, cluster)
	}
	if h.to != consensus.NoMember && h.to != self {
		return fmt.Errorf("%w: it wants %s, this member is %s", ErrWrongMember, h.to, self)
	}
	return nil
}

// checkAnswer is what a dialling member demands of the hello that comes back.
func (h hello) checkAnswer(sent hello) error {
	if err := h.checkVersion(); err != nil {
		return err
	}
	if h.cluster != sent.cluster {
		return fmt.Errorf("%w: it is of %s, this member of %s", ErrForeignCluster, h.cluster, sent.cluster)
	}
	if h.from != sent.to {
		return fmt.Errorf("%w: it is %s, wanted %s", ErrWrongMember, h.from, sent.to)
	}
	return nil
}

// refusal turns a failed check into what the other side sees.
func refusal(err error) error {
	return status.Error(codes.FailedPrecondition, err.Error())
}

// isRefusal reports whether err is the handshake failing, on either side, rather than the connection.
func isRefusal(err error) bool {
	return status.Code(err) == codes.FailedPrecondition || errors.Is(err, ErrForeignCluster) ||
		errors.Is(err, ErrNewerVersion) || errors.Is(err, ErrWrongMember) || errors.Is(err, ErrHandshake)
}
