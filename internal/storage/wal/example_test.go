package wal_test

import (
	"fmt"
	"os"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

func ExampleWAL() {
	o := wal.Options{FS: filestest.NewMem(), Dir: "wal"}
	log, _ := wal.Create(o, wal.Identity{Cluster: 0xc, Member: 0xa, Storage: wal.StorageID{5}})
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
		fmt.Println(got.Entries[i].Position(), got.Entries[i].Kind)
	}
	_ = wal.Dump(os.Stdout, o.FS, o.Dir, nil)
	// Output:
	// 1.1 noop
	// 2.2 noop
	// 0000000000000001.wal: cluster c member a storage 05000000000000000000000000000000 segment 1, file of 1048784 bytes, the segment before has 0
	//         72 record of 69 bytes, durable 72
	//            carried  last entry 0
	//            hard     term 0 vote 0 commit 0
	//            base     after 0.0 config 0.0.0
	//            boots    0
	//            epoch    0
	//        160 record of 26 bytes, durable 160
	//            hard     term 1 vote a commit 0
	//            entry    1.1 noop, 0 bytes
	//            entry    2.1 command, 5 bytes
	//        208 record of 5 bytes, durable 208
	//            entry    2.2 noop, 0 bytes
	//        232 record of 2 bytes, durable 232
	//            mark     closed
	//        256 record of 2 bytes, durable 256
	//            mark     opened
	//        280 end of the log
}
