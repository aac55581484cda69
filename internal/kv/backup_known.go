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

// MaxBackupKnown is how many bases the row of the backup knows at most.
const MaxBackupKnown = 64

// Knows reports whether the hash is that of the manifest of a base that a member reported, and that is not forgotten yet.
func (b *BackupRow) Knows(hash [32]byte) bool {
	return slices.ContainsFunc(b.Known, func(k BackupBase) bool { return k.Hash == hash })
}

// know takes a base into the row, and forgets the one that was reported first.
func (b *BackupRow) know(base BackupBase) {
	if base.Hash == [32]byte{} || b.Knows(base.Hash) {
		return
	}
	former := b.Known[max(0, len(b.Known)-MaxBackupKnown+1):]
	b.Known = append(slices.Clone(former), base)
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
