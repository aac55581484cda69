package h2

import (
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
)

// Ensure that a large part of an answer is waited for until the client has given a window for nearly all of it, or has reset the
// stream.
func TestStream_WaitSent(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s *Stream){
		"a window": func(t *testing.T, s *Stream) {
			more := frames(t, func(f *http2.Framer) error {
				return firstError(f.WriteWindowUpdate(0, 1<<24), f.WriteWindowUpdate(1, 1<<24))
			})
			if _, err := s.c.take(more); err != nil {
				t.Error(err)
			}
		},
		"a reset": func(_ *testing.T, s *Stream) { s.Reset(Cancel) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var stream *Stream
			c, under := unread(t, &replies{keep: func(s *Stream) { stream = s }})
			under.open()
			sent := frames(t, func(f *http2.Framer) error { return firstError(f.WriteSettings(), ask(f, 1, true)) })
			if _, err := c.take(sent); err != nil || stream == nil {
				t.Fatal(err, stream)
			}
			taken := false
			go func() {
				stream.Send([]Part{{Data: make([]byte, 1<<20)}})
				stream.WaitSent()
				taken = true
			}()
			if synctest.Wait(); taken {
				t.Errorf("%s: a MiB is taken by a client that reads nothing", name)
			}
			end(t, stream)
			if synctest.Wait(); !taken {
				t.Errorf("%s: it is waited for further", name)
			}
		})
	}
}
