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
