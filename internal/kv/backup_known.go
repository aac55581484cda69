package kv

import (
	"encoding/binary"
	"slices"
)

// BackupBase is a base that a member made, or continued.
type BackupBase struct {
	Index uint64
	Hash  [32]byte // of its manifest
}

// MaxBackupKnown is how many bases, and how many gaps, the row of the backup knows at most.
const MaxBackupKnown = 64

func knows(all []BackupBase, hash [32]byte) bool {
	return slices.ContainsFunc(all, func(k BackupBase) bool { return k.Hash == hash })
}

// know returns the list with a base, and without the one that was reported first if there would be too many.
func know(all []BackupBase, base BackupBase) []BackupBase {
	if base.Hash == [32]byte{} || knows(all, base.Hash) {
		return all
	}
	return append(slices.Clone(all[max(0, len(all)-MaxBackupKnown+1):]), base)
}

func appendKnown(dst []byte, all []BackupBase) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(all)))
	for i := range all {
		dst = append(binary.AppendUvarint(dst, all[i].Index), all[i].Hash[:]...)
	}
	return dst
}

func (r *reader) backupKnown() (all []BackupBase) {
	n := r.count(1 + 32)
	r.shown(n <= MaxBackupKnown)
	for range min(n, MaxBackupKnown) {
		all = append(all, BackupBase{Index: r.uvarint(), Hash: r.hash()})
	}
	return all
}

// BackupGap are entries that the backup lacks: those after one, until before another.
type BackupGap struct {
	After, Until uint64
	Time         int64 // when it was noted
}

func (g *BackupGap) append(dst []byte) []byte {
	return binary.AppendVarint(binary.AppendUvarint(binary.AppendUvarint(dst, g.After), g.Until), g.Time)
}

func (r *reader) backupGap() BackupGap {
	return BackupGap{After: r.uvarint(), Until: r.uvarint(), Time: r.varint()}
}

func lacks(all []BackupGap, index uint64) bool {
	return slices.ContainsFunc(all, func(g BackupGap) bool { return g.After < index && index < g.Until })
}

// knowGap returns the list with a gap, and without the one that was reported first if there would be too many.
func knowGap(all []BackupGap, gap BackupGap) []BackupGap {
	if slices.Contains(all, gap) {
		return all
	}
	return append(slices.Clone(all[max(0, len(all)-MaxBackupKnown+1):]), gap)
}

func appendGaps(dst []byte, all []BackupGap) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(all)))
	for i := range all {
		dst = all[i].append(dst)
	}
	return dst
}

func (r *reader) backupGaps() (all []BackupGap) {
	n := r.count(3)
	r.shown(n <= MaxBackupKnown)
	for range min(n, MaxBackupKnown) {
		all = append(all, r.backupGap())
	}
	return all
}
