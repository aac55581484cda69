package logtest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Log is a log of etcd under construction.
type Log struct {
	crc     uint32
	content []byte
	files   [][]byte
}

// New begins the log of a member.
func New(member, cluster uint64) *Log {
	l := &Log{}
	l.record(4, nil)
	l.record(1, message(1, member, 2, cluster))
	return l
}

// message encodes numeric fields, given as pairs.
func message(pairs ...uint64) (b []byte) {
	for i := 0; i < len(pairs); i += 2 {
		b = protowire.AppendTag(b, protowire.Number(pairs[i]), protowire.VarintType)
		b = protowire.AppendVarint(b, pairs[i+1])
	}
	return b
}

func (l *Log) record(kind uint64, data []byte) {
	l.crc = crc32.Update(l.crc, crc32.MakeTable(crc32.Castagnoli), data)
	record := message(1, kind, 2, uint64(l.crc))
	if len(data) > 0 {
		record = protowire.AppendTag(record, 3, protowire.BytesType)
		record = protowire.AppendBytes(record, data)
	}
	length := uint64(len(record))
	if padding := (8 - len(record)%8) % 8; padding > 0 {
		length |= uint64(0x80|padding) << 56
		record = append(record, make([]byte, padding)...)
	}
	l.content = append(binary.LittleEndian.AppendUint64(l.content, length), record...)
}

// Entry adds an entry of a kind: 0 is a request, nil a no-op, 1 a change of members.
func (l *Log) Entry(index, kind uint64, request *pb.InternalRaftRequest) *Log {
	entry := message(1, kind, 2, 1, 3, index)
	if request != nil {
		data, err := proto.Marshal(request)
		if err != nil {
			panic(err)
		}
		entry = protowire.AppendTag(entry, 4, protowire.BytesType)
		entry = protowire.AppendBytes(entry, data)
	}
	l.record(2, entry)
	return l
}

// State adds how far the log is committed.
func (l *Log) State(commit uint64) *Log {
	l.record(3, message(1, 1, 3, commit))
	return l
}

// Snapshot adds the name of a snapshot.
func (l *Log) Snapshot(index uint64) *Log {
	l.record(5, message(1, index, 2, 1))
	return l
}

// Cut begins the next file.
func (l *Log) Cut() *Log {
	l.files, l.content = append(l.files, l.content), nil
	l.record(4, nil)
	return l
}

// Bytes is the file under construction.
func (l *Log) Bytes() []byte { return l.content }

// Write writes the files into a directory, with room behind the last one as etcd leaves it.
func (l *Log) Write(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, content := range append(l.files, append(l.content, make([]byte, 4096)...)) {
		name := fmt.Sprintf("%016x-%016x.wal", i, i)
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
