package transport

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestDialFirst dials the addresses of one name, of which some answer nothing until the context ends, and some refuse.
func TestDialFirst(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		name, addresses string // a letter each: s answers nothing, r refuses, o accepts
		ok              bool
		within          time.Duration
	}{
		{"one that accepts", "o", true, 0},
		{"one that answers nothing hides no other", "so", true, nextAddress},
		{"nor do several", "ssso", true, 3 * nextAddress},
		{"one that refuses costs no time", "rro", true, 0},
		{"one that refuses while another is tried", "sro", true, nextAddress},
		{"none accepts", "srs", false, 2 * time.Second},
		{"all refuse", "rrr", false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var addresses []string
				for _, letter := range test.addresses {
					addresses = append(addresses, string(letter))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				begun := time.Now()
				conn, err := dialFirst(ctx, addresses, func(ctx context.Context, address string) (net.Conn, error) {
					switch address {
					case "o":
						conn, _ := net.Pipe()
						return conn, nil
					case "r":
						return nil, refused
					}
					<-ctx.Done()
					return nil, ctx.Err()
				})
				if took := time.Since(begun); took != test.within {
					t.Errorf("it took %v, want %v", took, test.within)
				}
				if (err == nil) != test.ok || (conn != nil) != test.ok {
					t.Errorf("the connection is %v, the error %v; want one: %v", conn, err, test.ok)
				}
				synctest.Wait() // nothing is left
			})
		})
	}
}

// TestDialURL_names dials by a name, through the resolver of this machine.
func TestDialURL_names(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	conn, err := dialURL(t.Context(), "http://localhost:"+port, nil, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if _, err := dialURL(t.Context(), "http://none.invalid:"+port, nil, 10*time.Second); !isLookup(err) {
		t.Errorf("a name that does not resolve: %v", err)
	}
}
