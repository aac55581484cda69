package rpc_test

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// frameOf is a masked text frame that is a whole message. The mask is zero.
func frameOf(message string) []byte {
	frame := binary.BigEndian.AppendUint64([]byte{0x81, 0x80 | 127}, uint64(len(message)))
	return append(append(frame, 0, 0, 0, 0), message...)
}

// Ensure that a large message in one frame is a call, and not a flood, however many bytes of it are read at once.
func TestGateway_websocketLargeFrame(t *testing.T) {
	put := frameOf(`{"key":"YQ==","value":"` + strings.Repeat("A", 200<<10) + `"}`)
	for _, row := range []struct {
		name, scheme string
		wrap         func(net.Listener) net.Listener
	}{
		{"plain", "ws", func(l net.Listener) net.Listener { return l }},
		{"encrypted", "wss", func(l net.Listener) net.Listener {
			return hiddenTLS{l, &tls.Config{Certificates: []tls.Certificate{makeCert(t, "server")}}}
		}},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := serveOn(t, row.wrap(l), newMachineBackend(t), nil)
		dialer := websocket.Dialer{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		for i := range 5 {
			conn, answer, err := dialer.Dial(row.scheme+"://"+s.addr+"/v3/kv/put", nil)
			if err != nil {
				t.Fatalf("%s: %v", row.name, err)
			}
			answer.Body.Close()
			if _, err := conn.NetConn().Write(put); err != nil {
				t.Errorf("%s, put %d: %v", row.name, i, err)
			}
			if _, got, err := conn.ReadMessage(); err != nil || !strings.Contains(string(got), `"revision":`) {
				t.Errorf("%s, put %d: got %.200s %v", row.name, i, got, err)
			}
			conn.Close()
		}
	}
}

// Ensure that websockets of a host that has sent floods are refused for a while, and that those of other hosts, and its own
// requests, are not.
func TestGateway_websocketFloodsAgain(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	dial := func(host string) (*websocket.Conn, int, error) {
		dialer := websocket.Dialer{NetDialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}).DialContext}
		conn, answer, err := dialer.Dial("ws://"+s.addr+"/v3/watch", nil)
		if answer == nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return conn, answer.StatusCode, err
	}
	flood := func() (status int) {
		conn, status, err := dial("127.0.0.1")
		if err != nil {
			return status
		}
		defer conn.Close()
		pings := []byte(strings.Repeat("\x89\x80\x00\x00\x00\x00", 100))
		go func() {
			for err := error(nil); err == nil; { // until the server closes
				_, err = conn.NetConn().Write(pings)
			}
		}()
		for { // the reason may be lost with the connection
			_, text, err := conn.ReadMessage()
			if err != nil {
				return status
			}
			if !strings.Contains(string(text), "brings nothing forward") {
				t.Errorf("got %s", text)
			}
		}
	}
	const taken, most = 17, 100
	begun, floods, status := time.Now(), 0, 0
	for ; floods < most; floods++ {
		if status = flood(); status != http.StatusSwitchingProtocols {
			break
		}
	}
	if spent := int(time.Since(begun).Seconds()); floods < taken || floods > taken+spent {
		t.Errorf("%d floods were taken of one host, want %d and one a second", floods, taken)
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("after the floods: got %d", status)
	}
	conn, _, err := dial("127.0.0.2")
	if err != nil {
		t.Fatalf("another host: %v", err)
	}
	conn.Close()
	if code, got := s.post(t, "/v3/kv/range", `{"key":"YQ=="}`); code != http.StatusOK {
		t.Errorf("a request: got %d %s", code, got)
	}
	if _, err := s.client(t).Put(waitContext(t), "a", "v"); err != nil {
		t.Errorf("by HTTP/2: %v", err)
	}
	s.awaitMetric(t, "quorate_hosts_abandoning 1")
}
