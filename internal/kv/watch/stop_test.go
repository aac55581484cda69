package watch

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"
)

// Other code may keep a stream longer than it is used: the runtime keeps functions of stopped timers. The stream holds no
// events then.
func TestStream_Close_forgets(t *testing.T) {
	store, hub := openStore(t), NewHub(Options{HistoryBytes: 1})
	hub.Reset(store)
	put(t, store, hub, make([]byte, 1<<20), "a")
	s := hub.Open()
	s.Create(Request{Key: []byte("a"), Start: 1})
	var batch weak.Pointer[Batch]
	for batch == (weak.Pointer[Batch]{}) {
		responses, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range responses {
			if responses[i].Batch != nil {
				batch = weak.Make(responses[i].Batch)
			}
		}
	}
	s.Close()
	runtime.GC()
	if batch.Value() != nil {
		t.Error("a closed stream holds the events that it handed out last")
	}
	runtime.KeepAlive(s)
}

// A stream that waits for its turn to read gives up once it was stopped: those before it may be many.
func TestStream_Stop_waitsToRead(t *testing.T) {
	for name, turns := range map[string]func(*Stream) chan struct{}{
		"of the client": func(s *Stream) chan struct{} { return s.account.reads },
		"of all":        func(s *Stream) chan struct{} { return s.hub.reads },
	} {
		store := openStore(t)
		synctest.Test(t, func(t *testing.T) {
			hub := NewHub(Options{HistoryBytes: 1})
			hub.Reset(store)
			s := hub.Open()
			s.Create(Request{Key: []byte("a"), Start: 1})
			taken := turns(s)
			for range cap(taken) {
				taken <- struct{}{}
			}
			ended := make(chan error)
			go func() {
				for {
					if _, err := s.Next(context.Background()); err != nil {
						ended <- err
						return
					}
				}
			}()
			synctest.Wait()
			s.Stop()
			if err := <-ended; !errors.Is(err, ErrClosed) {
				t.Errorf("%s: Next returns %v, want that the stream is closed", name, err)
			}
			s.Close()
			for range cap(taken) {
				<-taken
			}
			if len(s.account.reads) != 0 || len(hub.reads) != 0 {
				t.Errorf("%s: a stream that was stopped keeps a turn to read", name)
			}
		})
	}
}
