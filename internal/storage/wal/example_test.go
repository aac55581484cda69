package wal_test

import (
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/wal"
)

func ExampleWAL() {
	o := wal.Options{FS: vfs.NewMem(), Dir: "wal"}
	log, _ := wal.Create(o, wal.Identity{Cluster: 0xc, Member: 0xa, Storage: 0x5})
	_ = log.Append(
		wal.Batch{Hard: &consensus.HardState{Term: 1, Vote: 0xa}},
		wal.Batch{Entries: []consensus.Entry{
			{Index: 1, Term: 1, Kind: consensus.EntryNoop},
			{Index: 2, Term: 1, Kind: consensus.EntryCommand, Payload: []byte("put x")},
		}},
	)
	_ = log.Append(wal.Batch{Entries: []consensus.Entry{{Index: 2, Term: 2, Kind: consensus.EntryNoop}}})
	_ = log.Close()

	_, got, _ := wal.Open(o)
	for i := range got.Entries {
		fmt.Println(got.Entries[i].Mark(), got.Entries[i].Kind)
	}
	_ = wal.Dump(os.Stdout, o.FS, o.Dir)
	// Output:
	// 1.1 noop
	// 2.2 noop
	// 0000000000000001.wal: cluster c member a storage 5 segment 1, file of 1048744 bytes, the segment before has 0
	//         64 record of 34 bytes, durable 64
	//            carried  last entry 0
	//            hard     term 0 vote 0 commit 0
	//            base     after 0.0 config 0.0.0
	//        120 record of 26 bytes, durable 120
	//            hard     term 1 vote a commit 0
	//            entry    1.1 noop, 0 bytes
	//            entry    2.1 command, 5 bytes
	//        168 record of 5 bytes, durable 168
	//            entry    2.2 noop, 0 bytes
	//        192 record of 2 bytes, durable 192
	//            mark     closed
	//        216 record of 2 bytes, durable 216
	//            mark     opened
	//        240 end of the log
}
