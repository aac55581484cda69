package ctl

import (
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/quorate/quorate/internal/ctl/command"
)

// pair is a key-value pair as JSON. Bytes that are not text are given in base64 under another name, so that a reader
// never has to guess.
type pair struct {
	Key            string `json:"key,omitempty"`
	KeyBytes       []byte `json:"key_base64,omitempty"`
	Value          string `json:"value,omitempty"`
	ValueBytes     []byte `json:"value_base64,omitempty"`
	CreateRevision int64  `json:"create_revision,omitempty"`
	ModRevision    int64  `json:"mod_revision,omitempty"`
	Version        int64  `json:"version,omitempty"`
	Lease          string `json:"lease,omitempty"`
}

func newPair(kv *mvccpb.KeyValue) pair {
	p := pair{CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version}
	if utf8.Valid(kv.Key) {
		p.Key = string(kv.Key)
	} else {
		p.KeyBytes = kv.Key
	}
	if utf8.Valid(kv.Value) {
		p.Value = string(kv.Value)
	} else {
		p.ValueBytes = kv.Value
	}
	if kv.Lease != 0 {
		p.Lease = command.HexID(uint64(kv.Lease))
	}
	return p
}

func newPairs(kvs []*mvccpb.KeyValue) []pair {
	pairs := make([]pair, 0, len(kvs))
	for _, kv := range kvs {
		pairs = append(pairs, newPair(kv))
	}
	return pairs
}
