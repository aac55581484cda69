package gateway

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/admission"
)

// Ensure that large requests are read, and large answers written, only when it is their turn; small ones at once.
func TestMarshaler_turns(t *testing.T) { synctest.Test(t, marshalInTurns) }

func marshalInTurns(t *testing.T) {
	const total = 8 << 20
	in := &intake{limit: total, held: admission.NewLedger(total), first: admission.NewFirstMessages(admission.FirstMessageLimits{})}
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
	write := func(v any) func() error {
		return func() error { _, err := m.Marshal(v); return err }
	}
	key := func(key []byte) string {
		return `{"compare":[{"key":"` + base64.StdEncoding.EncodeToString(key) + `"}]}`
	}
	work := map[string]func() error{
		"a large request":                  read(key(large)),
		"a request of many objects":        read(`{"success":[` + strings.Repeat("{},", 1000) + "{}]}"),
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
