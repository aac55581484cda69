package ctl

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"
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
		p.Lease = hexID(uint64(kv.Lease))
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

func hexID(id uint64) string { return fmt.Sprintf("%x", id) }

// printJSON writes one value on one line.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table collects rows and prints them with aligned columns.
type table struct{ rows [][]string }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) lines() []string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out []string
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		out = append(out, strings.TrimRight(line.String(), " "))
	}
	return out
}

func (t *table) print(w io.Writer) {
	for _, line := range t.lines() {
		fmt.Fprintln(w, line)
	}
}
