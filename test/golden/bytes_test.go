package golden_test

import (
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/test/golden/frozen"
)

var rewrite = flag.Bool("rewrite", false, "append values of new kinds to the table, and make archives that are missing")

// Ensure that no value is encoded otherwise than the table of 1.0 has it.
func TestBytes(t *testing.T) {
	values := encode("command", commands(), func(dst []byte, c *kv.Command) []byte { return c.Append(dst) })
	values = append(values, encode("result", results(), func(dst []byte, r *kv.Result) []byte { return r.Append(dst) })...)
	values = append(values, ofConsensus()...)
	values = append(values, ofTheLog(t)...)
	values = append(values, ofTheStore(t)...)
	values = append(values, ofFiles(t)...)
	values = append(values, ofTheNativeAPI()...)
	frozen.Check(t, "testdata/1.0/bytes.txt", *rewrite, values)
}

// Ensure that the table has every kind of command that this build knows, with the level of each.
func TestBytes_everyCommand(t *testing.T) {
	var got, want []byte
	for _, c := range commands() {
		if payload := c.value.Append(nil); !slices.Contains(got, payload[1]) {
			got = append(got, payload[1])
		}
	}
	for kind := range 256 {
		if _, known := kv.Needs([]byte{1, byte(kind)}); known {
			want = append(want, byte(kind))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the table has commands of the kinds %v, and this build knows %v", got, want)
	}
}

// Ensure that the table has every rejection that this build knows: their numbers are on disk, and in the chain.
func TestBytes_everyRejection(t *testing.T) {
	var listed []error
	for _, r := range results() {
		if r.value.Err != nil {
			listed = append(listed, r.value.Err)
		}
	}
	encoded := (&kv.Result{Revision: 3, Err: kv.ErrCompacted}).Append(nil)
	for n := 1; n < 256; n++ {
		encoded[len(encoded)-1] = byte(n)
		result, err := kv.DecodeResult(encoded)
		switch {
		case err == nil && (n > len(listed) || listed[n-1] != result.Err):
			t.Errorf("rejection %d, %q, is not in its place in the table", n, result.Err)
		case err != nil && n <= len(listed):
			t.Errorf("rejection %d, %q, does not decode", n, listed[n-1])
		}
	}
}

// Ensure that no field of what is replicated or sent between members lacks a value in the table.
func TestBytes_everyField(t *testing.T) {
	seen := fields{}
	for _, c := range commands() {
		seen.note(reflect.ValueOf(c.value))
	}
	for _, r := range results() {
		seen.note(reflect.ValueOf(r.value))
	}
	for _, m := range messages() {
		seen.note(reflect.ValueOf(m.value))
	}
	for _, h := range hardStates() {
		seen.note(reflect.ValueOf(h.value))
	}
	for _, v := range []any{aChange(), aRequest(), aMeta(), records()} {
		seen.note(reflect.ValueOf(v))
	}
	never := seen.never()
	for _, other := range []string{
		"auth.JoinToken.UsedBy", // a field of the row, and of no command
		"kv.Result.Memory",      // of the process that answers, and not encoded
	} {
		never = slices.DeleteFunc(never, func(name string) bool { return name == other })
	}
	if len(never) > 0 {
		t.Errorf("no value of the table sets %s: add one that does, and give what is new a feature level (docs/formats.md)",
			strings.Join(never, ", "))
	}
	// The check itself: a field that stays zero is found.
	one := fields{}
	one.note(reflect.ValueOf(consensus.HardState{Term: 1, Vote: 1, Commit: 1}))
	if got := one.never(); !slices.Equal(got, []string{"consensus.HardState.Promise"}) {
		t.Errorf("fields of a hard state that were not set: %v", got)
	}
}

// fields says of each field of each struct whether it was set.
type fields map[string]bool

func (f fields) note(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			f.note(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			f.note(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if field.Anonymous {
				f.note(v.Field(i))
				continue
			}
			name := fmt.Sprintf("%v.%s", v.Type(), field.Name)
			f[name] = f[name] || !v.Field(i).IsZero()
			f.note(v.Field(i))
		}
	}
}

func (f fields) never() (names []string) {
	for name, set := range f {
		if !set {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
