package kv

import "encoding/binary"

// BackupRetention is what became of the place by the policy's rule. It is that of the last round.
type BackupRetention struct {
	At      int64  // when the round ended, in milliseconds of Unix time; zero: none did
	From    int64  // any moment since can be restored, but for gaps; zero: as far back as there are bases
	Bases   uint64 // that are there
	Removed uint64 // objects
	Bytes   uint64 // of them
	Why     string // less is removed than the rule lets it, or nothing; empty: all is well
}

func (b *BackupRetention) append(dst []byte) []byte {
	dst = binary.AppendVarint(binary.AppendVarint(dst, b.At), b.From)
	for _, n := range [...]uint64{b.Bases, b.Removed, b.Bytes} {
		dst = binary.AppendUvarint(dst, n)
	}
	return appendText(dst, b.Why)
}

func (r *reader) backupRetention() BackupRetention {
	return BackupRetention{At: r.varint(), From: r.varint(), Bases: r.uvarint(), Removed: r.uvarint(), Bytes: r.uvarint(),
		Why: string(r.bytes())}
}

// report takes what a member knows. One that has done no round yet knows at most why.
func (b *BackupRetention) report(said *BackupRetention) {
	if said.At != 0 {
		*b = *said
	}
	b.Why = said.Why
}
