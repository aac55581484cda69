package gateway

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that large requests are read, and large answers written, only when it is their turn; small ones at once.
func TestMarshaler_turns(t *testing.T) { synctest.Test(t, marshalInTurns) }

func marshalInTurns(t *testing.T) {
	const total = 8 << 20
	in := newIntake(total)
	large := make([]byte, admission.LargeBytes)
	turns := admission.NewTurns()
	m := newMarshaler(turns)
	read := func(body string) func() error {
		r := httptest.NewRequest(http.MethodPost, "/v3/kv/txn", strings.NewReader(body))
		if _, err := in.readBody(httptest.NewRecorder(), r, "a"); err != nil {
			t.Fatal(err)
		}
		return func() error { return m.NewDecoder(r.Body).Decode(&pb.TxnRequest{}) }
	}
	message := func(body string) func() error {
		several := messagesForTesting(in, strings.NewReader(body), func(err error) { t.Error(err) })
		return func() error { return m.NewDecoder(several).Decode(&pb.WatchRequest{}) }
	}
	write := func(v any) func() error {
		return func() error { _, err := m.Marshal(v); return err }
	}
	key := func(key []byte) string {
		return `{"compare":[{"key":"` + base64.StdEncoding.EncodeToString(key) + `"}]}`
	}
	work := map[string]func() error{
		"a large request":                  read(key(large)),
		"a request of many objects":        read(`{"success":[` + strings.Repeat("{},", 1000) + "{}]}"),
		"a request of many elements":       read(`{"unknown":[0` + strings.Repeat(",0", 3000) + `]}`),
		"a message of many elements":       message(`{"create_request":{"filters":[0` + strings.Repeat(",0", 3000) + `]}}`),
		"small: a message":                 message(`{"create_request":{"filters":[0` + strings.Repeat(",0", 300) + `]}}`),
		"a large answer":                   write(&pb.PutRequest{Value: large}),
		"a large answer within a stream":   write(map[string]any{"result": &pb.PutRequest{Value: large}}),
		"small: a request":                 read(key(large[:admission.LargeBytes/2])),
		"small: a request of some objects": read(`{"success":[` + strings.Repeat("{},", 100) + "{}]}"),
		"small: an answer":                 write(&pb.PutRequest{Value: large[:admission.LargeBytes/2]}),
	}
	end := make(chan struct{})
	for range runtime.GOMAXPROCS(0) { // all turns, and one more
		go turns.Do(admission.LargeBytes, func() { <-end })
	}
	synctest.Wait()
	done := map[string]*atomic.Bool{}
	for name, do := range work {
		ended := new(atomic.Bool)
		done[name] = ended
		go func() {
			if err := do(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			ended.Store(true)
		}()
	}
	synctest.Wait()
	for name, ended := range done {
		if small := strings.HasPrefix(name, "small"); ended.Load() != small {
			t.Errorf("%s: was done without a turn: %t", name, ended.Load())
		}
	}
	close(end)
	synctest.Wait()
	for name, ended := range done {
		if !ended.Load() {
			t.Errorf("%s: was not done", name)
		}
	}
}

// Ensure that a request is read as JSON of which the first value counts, with the errors that it has always had.
func TestMarshaler_NewDecoder(t *testing.T) {
	m := newMarshaler(admission.NewTurns())
	for body, want := range map[string]string{
		`{"key":"YQ=="}`: "", ` {"key":"YQ==","else":[{}]} `: "", `{"key":"YQ=="} more`: "", `{"key":"YQ=="}{"key":"Yg=="}`: "",
		`{"key":"YQ==","key":"Yg=="}`: `proto: (line 1:15): duplicate field "key"`,
		`{"key":"YQ=="`:               "unexpected EOF", "": "EOF", `{"key":1}`: "proto: (line 1:8): invalid value for bytes field key: 1",
		"nothing": "invalid character 'o' in literal null (expecting 'u')",
	} {
		var r pb.RangeRequest
		once := &whole{Reader: bytes.NewReader([]byte(body)), body: []byte(body)}
		err := m.NewDecoder(once).Decode(&r)
		if got := strings.ReplaceAll(fmt.Sprint(err), "\u00a0", " "); want == "" && (err != nil || string(r.Key) != "a") ||
			want != "" && got != want {
			t.Errorf("%s: got %q, %v", body, r.Key, err)
		}
		if alone := want == "" && strings.HasSuffix(strings.TrimSpace(body), "}") && !strings.Contains(body, "}{"); alone &&
			once.Len() != len(body) {
			t.Errorf("%s: was looked through before it was read", body)
		}
	}
}
