package wal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
)

// itemKind is the kind of an item in a record. A number never gets a second meaning.
type itemKind uint8

const (
	itemEntry   itemKind = 1  // entry; if the log has its index already, the log is cut there first
	itemHard    itemKind = 2  // hard state
	itemReset   itemKind = 3  // snapshot metadata: all entries are dropped, and the log begins after it
	itemBase    itemKind = 4  // snapshot metadata: entries up to it are not needed, later ones stay
	itemRecord  itemKind = 5  // attempt (32 bytes), uvarint length, payload: a witness record is added
	itemForget  itemKind = 6  // attempt (32 bytes): its record is dropped
	itemCarried itemKind = 7  // last index (8 bytes): carried state follows and replaces all earlier state
	itemMark    itemKind = 8  // reason (1 byte): only the durable length in the record's head counts
	itemNamed   itemKind = 9  // entry without payload, which is that of the held record of its proposal and exact revision
	itemBoots   itemKind = 10 // number (8 bytes): how many times the data was opened
	itemEpoch   itemKind = 11 // number (8 bytes), recovery id (16 bytes): of the cluster
	itemPacked  itemKind = 12 // the only item of its record: an S2 block of items
)

// Reasons of a mark.
const (
	markOpened = 1
	markClosed = 2
)

// A log takes and keeps values of package consensus, so that a package which asks for a write need not know this one.
type (
	AttemptID     = consensus.AttemptID
	WitnessRecord = consensus.WitnessRecord
	Batch         = consensus.Batch
)

func appendBoots(dst []byte, boots uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, byte(itemBoots)), boots)
}

func appendEpoch(dst []byte, epoch *consensus.Epoch) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, byte(itemEpoch)), epoch.Number)
	return append(dst, epoch.Recovery[:]...)
}

func appendWitness(dst []byte, r *WitnessRecord) []byte {
	if r.Forget {
		return append(append(dst, byte(itemForget)), r.Attempt[:]...)
	}
	dst = append(append(dst, byte(itemRecord)), r.Attempt[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(r.Payload)))
	return append(dst, r.Payload...)
}

// item is one decoded item; kind tells which other field counts.
type item struct {
	kind    itemKind
	entry   consensus.Entry // entry, entry by name
	hard    consensus.HardState
	meta    consensus.SnapshotMeta // reset, base
	witness WitnessRecord          // record, forget
	last    consensus.Index        // carried
	why     byte                   // mark
	boots   uint64                 // boots
	epoch   consensus.Epoch        // epoch
}

var (
	errShortItem    = errors.New("item is cut short")
	errNamedPayload = errors.New("entry by name has a payload of its own")
	errPackedInside = errors.New("packed items are not alone in their record")
)

// decodeItem decodes the head of src into it and returns the rest. The fields of it alias src.
func decodeItem(it *item, src []byte) (rest []byte, err error) {
	if len(src) == 0 {
		return nil, errShortItem
	}
	it.kind, src = itemKind(src[0]), src[1:]
	switch it.kind {
	case itemEntry:
		it.entry, rest, err = consensus.DecodeEntry(src)
	case itemNamed:
		if it.entry, rest, err = consensus.DecodeEntry(src); err == nil && len(it.entry.Payload) > 0 {
			err = errNamedPayload
		}
	case itemHard:
		it.hard, rest, err = consensus.DecodeHardState(src)
	case itemReset, itemBase:
		it.meta, rest, err = consensus.DecodeSnapshotMeta(src)
	case itemRecord, itemForget:
		rest, err = decodeWitness(&it.witness, src, it.kind == itemForget)
	case itemCarried:
		if len(src) < 8 {
			return nil, errShortItem
		}
		it.last, rest = consensus.Index(binary.LittleEndian.Uint64(src)), src[8:]
	case itemMark:
		if len(src) < 1 {
			return nil, errShortItem
		}
		if it.why, rest = src[0], src[1:]; it.why > markClosed {
			return nil, fmt.Errorf("mark of unknown kind %d: %w", it.why, level.ErrLater)
		}
	case itemBoots:
		if len(src) < 8 {
			return nil, errShortItem
		}
		it.boots, rest = binary.LittleEndian.Uint64(src), src[8:]
	case itemEpoch:
		if len(src) < 24 {
			return nil, errShortItem
		}
		it.epoch.Number, it.epoch.Recovery = binary.LittleEndian.Uint64(src), [16]byte(src[8:24])
		rest = src[24:]
	case itemPacked:
		return nil, errPackedInside
	default:
		return nil, unknownKind(it.kind)
	}
	return rest, err
}

func unknownKind(kind itemKind) error {
	return fmt.Errorf("item of unknown kind %d: %w", kind, level.ErrLater)
}

func decodeWitness(r *WitnessRecord, src []byte, forget bool) (rest []byte, err error) {
	if len(src) < len(r.Attempt) {
		return nil, errShortItem
	}
	*r = WitnessRecord{Attempt: AttemptID(src[:len(r.Attempt)]), Forget: forget}
	src = src[len(r.Attempt):]
	if forget {
		return src, nil
	}
	length, n := binary.Uvarint(src)
	if n <= 0 || length > uint64(len(src)-n) {
		return nil, errShortItem
	}
	src = src[n:]
	r.Payload = src[:length:length]
	return src[length:], nil
}
