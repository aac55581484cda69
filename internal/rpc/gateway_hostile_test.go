package rpc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that requests which are too large, too deep or too many objects are refused, with and without a length.
func TestGateway_largeRequests(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) { o.MaxRequestBytes = 64 << 10 })
	put := func(bytes int) string { return `{"key":"YQ==","value":"` + strings.Repeat("A", bytes) + `"}` }
	for _, row := range []struct {
		name, path, body string
		code             int
		want             string
	}{
		{"too large for etcd", "kv/put", put(100 << 10), 400, "etcdserver: request is too large"},
		{"too large for a message", "kv/put", put(900 << 10), 429, "grpc: received message larger than max (691207 vs. 589824)"},
		{"too large for a body", "kv/put", put(2 << 20), 429, "grpc: received message larger than max"},
		{"too deep", "kv/txn", strings.Repeat(`{"success":[`, 20_000), 400, "exceeded max depth"},
		{"too many objects", "kv/txn", `{"success":[` + strings.Repeat("{},", 70_000) + `{}]}`, 400, "more than 65536 JSON objects"},
		{"a watch of a large key", "watch", `{"create_request":{"key":"` + strings.Repeat("A", 128<<10) + `"}}`, 400,
			"a JSON message is larger than 65536 bytes"},
	} {
		if code, got := s.post(t, "/v3/"+row.path, row.body); code != row.code || !strings.Contains(got, row.want) {
			t.Errorf("%s: got %d %.200s, want %d %s", row.name, code, got, row.code, row.want)
		}
		r, err := http.NewRequest(http.MethodPost, "http://"+s.addr+"/v3/"+row.path, io.MultiReader(strings.NewReader(row.body)))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r) // in chunks, without a length
		if err != nil {
			t.Logf("%s in chunks: %v", row.name, err) // the server has closed the connection while the client was sending
			continue
		}
		if answer.Body.Close(); answer.StatusCode != row.code {
			t.Errorf("%s in chunks: got %d, want %d", row.name, answer.StatusCode, row.code)
		}
	}
	s.awaitMetric(t, "quorate_gateway_request_bytes 0")
}

// Ensure that a request that does not arrive is ended like one of gRPC.
func TestGateway_slowBody(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) {
		o.FirstMessage = admission.FirstMessageLimits{Timeout: 10 * time.Millisecond}
	})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("got %d %s", answer.StatusCode, text)
	}
	s.awaitMetric(t, "quorate_calls_unsent_ended_total 1")
	s.awaitMetric(t, "quorate_gateway_request_bytes 0")
}

// Ensure that a watch whose message does not arrive is ended like one of gRPC, by HTTP and by websocket, and that one that
// waits for its client is not.
func TestGateway_slowMessage(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) {
		o.FirstMessage = admission.FirstMessageLimits{Timeout: 100 * time.Millisecond}
	})
	const create = `{"create_request":{"key":"YQ=="}}`
	quiet, half := s.websocket(t, "/v3/watch"), s.websocket(t, "/v3/watch")
	hear := func(conn *websocket.Conn, want string) {
		t.Helper()
		if _, message, err := conn.ReadMessage(); err != nil || !strings.Contains(string(message), want) {
			t.Errorf("got %s %v, want %s", message, err, want)
		}
	}
	for _, conn := range []*websocket.Conn{quiet, half} {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(create)); err != nil {
			t.Fatal(err)
		}
		hear(conn, `"created":true`)
	}
	if _, err := half.NetConn().Write(append([]byte{0x81, 0x80 | 100, 0, 0, 0, 0}, create[:20]...)); err != nil {
		t.Fatal(err)
	}
	hear(half, `"code":4`)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /v3/watch HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("got %d %s", answer.StatusCode, text)
	}
	s.post(t, "/v3/kv/put", `{"key":"YQ==","value":"MQ=="}`)
	hear(quiet, `"events":[{"kv":{"key":"YQ=="`)
	s.awaitMetric(t, "quorate_calls_unsent_ended_total 2")
}

// Ensure that the next call of an address with as many calls as a connection may have waits until one ends.
func TestGateway_manyCalls(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) { o.MaxConcurrentStreams = 2 })
	watch := func() io.Closer {
		answer, err := http.Post("http://"+s.addr+"/v3/watch", "", strings.NewReader(`{"create_request":{"key":"YQ=="}}`))
		if err != nil {
			t.Fatal(err)
		}
		return answer.Body
	}
	one, two := watch(), watch()
	defer one.Close()
	impatient, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	call := func(ctx context.Context) {
		body := strings.NewReader(`{"key":"YQ=="}`)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/v3/kv/range", body)
		if err != nil {
			ended <- err
			return
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		ended <- err
	}
	go call(impatient)
	s.awaitMetric(t, `quorate_gateway_calls{state="waiting"} 1`)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("who did not wait: got %v", err)
	}
	s.awaitMetric(t, `quorate_gateway_calls{state="waiting"} 0`)
	go call(context.Background())
	s.awaitMetric(t, `quorate_gateway_calls{state="waiting"} 1`)
	two.Close()
	if err := <-ended; err != nil {
		t.Errorf("who waited: got %v", err)
	}
	two = watch()
	defer two.Close()
	for _, whole := range []bool{true, false} { // a watch that waits; its client has sent all, or may send more
		body := `{"create_request":{"key":"YQ=="}}`
		length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
		if !whole {
			length, body = "Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n", len(body), body)
		}
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v3/watch HTTP/1.1\r\nHost: a\r\n%s\r\n%s", length, body)
		s.awaitMetric(t, `quorate_gateway_calls{state="waiting"} 1`)
		conn.Close()
		s.awaitMetric(t, `quorate_gateway_calls{state="waiting"} 0`)
	}
	socket := s.websocket(t, "/v3/watch")
	if err := socket.WriteMessage(websocket.TextMessage, []byte(`{"create_request":{"key":"YQ=="}}`)); err != nil {
		t.Fatal(err)
	}
	s.awaitMetric(t, `quorate_gateway_calls{state="waiting"} 1`)
	socket.NetConn().Close()
	s.awaitMetric(t, `quorate_gateway_calls{state="waiting"} 0`)
}

func (s *server) websocket(t *testing.T, path string, headers ...string) *websocket.Conn {
	t.Helper()
	header := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	conn, answer, err := websocket.DefaultDialer.Dial("ws://"+s.addr+path, header)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Ensure that websockets carry streams in both directions, and calls of one message.
func TestGateway_websocket(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	conn := s.websocket(t, "/v3/watch")
	say := func(message string) {
		t.Helper()
		if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	hear := func() string {
		t.Helper()
		_, message, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		return string(message)
	}
	say(`{"create_request":{"key":"YQ=="}}`)
	if got := hear(); !strings.Contains(got, `"created":true`) {
		t.Errorf("got %s", got)
	}
	s.post(t, "/v3/kv/put", `{"key":"YQ==","value":"MQ=="}`)
	if got := hear(); !strings.Contains(got, `"events":[{"kv":{"key":"YQ=="`) {
		t.Errorf("got %s", got)
	}
	say(`{"cancel_request":{"watch_id":"0"}}`)
	if got := hear(); !strings.Contains(got, `"canceled":true`) {
		t.Errorf("got %s", got)
	}
	say(`garbage`)
	if got := hear(); !strings.Contains(got, `"code":3`) {
		t.Errorf("got %s", got)
	}
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("after an error: got %v", err)
	}
	conn = s.websocket(t, "/v3/kv/range")
	say(`{"key":"YQ=="}`)
	if got := hear(); !strings.Contains(got, `"value":"MQ=="`) {
		t.Errorf("got %s", got)
	}
	s.awaitMetric(t, `quorate_gateway_calls{state="running"} 0`)
}

// Ensure that a websocket takes its token from where scripts can put it.
func TestGateway_websocketUsers(t *testing.T) {
	s, _, alice, _ := secured(t)
	login, err := alice.Authenticate(waitContext(t), "alice", "alicepw")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, header, value, want string }{
		{"a protocol", "Sec-WebSocket-Protocol", "Bearer, " + login.Token, `"count":"1"`},
		{"a cookie", "Cookie", "token=" + login.Token, `"count":"1"`},
		{"a header", "Authorization", login.Token, `"count":"1"`},
		{"metadata", "Grpc-Metadata-Token", login.Token, "user name is empty"},
	} {
		conn := s.websocket(t, "/v3/kv/range", row.header, row.value)
		if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"key":"YjE="}`)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.ReadMessage(); err != nil || !strings.Contains(string(got), row.want) {
			t.Errorf("%s: got %s, %v; want %s", row.name, got, err, row.want)
		}
	}
}

// Ensure that a websocket's client that sends too much, or vanishes, ends only its own call.
func TestGateway_websocketHostile(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) { o.AllowedOrigins = []string{"http://good"} })
	conn := s.websocket(t, "/v3/watch", "Origin", "http://good")
	large := `{"create_request":{"key":"` + strings.Repeat("A", 1<<20)
	if err := conn.WriteMessage(websocket.BinaryMessage, []byte(large)); err != nil {
		t.Logf("the server has hung up: %v", err)
	}
	for said := true; said; { // it may send the reason
		_, got, err := conn.ReadMessage()
		if said = err == nil; said && !strings.Contains(string(got), `{"error":{"code":3,`) {
			t.Errorf("a message that is too large was answered: %s", got)
		}
	}
	gone := s.websocket(t, "/v3/watch")
	if err := gone.WriteMessage(websocket.TextMessage, []byte(`{"create_request":{}}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := gone.ReadMessage(); err != nil {
		t.Fatal(err)
	}
	gone.NetConn().Close()
	s.awaitMetric(t, `quorate_gateway_calls{state="running"} 0`)
	s.awaitMetric(t, `quorate_costly_calls{call="stream"} 0`)
	// A client that sends more than a call takes ends its call, too, when it vanishes.
	if code, body := s.post(t, "/v3/lock/lock", `{"name":"YQ=="}`); code != http.StatusOK {
		t.Fatal(body)
	}
	talker := s.websocket(t, "/v3/lock/lock")
	for range 3 {
		if err := talker.WriteMessage(websocket.TextMessage, []byte(`{"name":"YQ=="}`)); err != nil {
			t.Fatal(err)
		}
	}
	s.awaitMetric(t, `quorate_costly_calls{call="lock"} 1`)
	talker.NetConn().Close()
	s.awaitMetric(t, `quorate_costly_calls{call="lock"} 0`)
	_, answer, err := websocket.DefaultDialer.Dial("ws://"+s.addr+"/v3/watch", http.Header{"Origin": {"http://evil"}})
	if err == nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("a script of another page: got %v", err)
	}
}

// Ensure that a websocket with useless frames ends, and that one with many messages continues.
func TestGateway_websocketFloods(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	const most = 32 << 20 // beyond the buffers of the sockets
	begins := "\x01\x80\x00\x00\x00\x00"
	for _, row := range []struct{ name, first, frame string }{
		{"pings", "", "\x89\x80\x00\x00\x00\x00"},
		{"messages without contents", "", "\x81\x80\x00\x00\x00\x00"},
		{"fragments without contents", begins, "\x00\x80\x00\x00\x00\x00"},
		{"fragments of one byte", begins, "\x00\x81\x00\x00\x00\x00 "},
	} {
		conn := s.websocket(t, "/v3/watch").NetConn()
		go func() { _, _ = io.Copy(io.Discard, conn) }() // it ends with the connection
		_, err := io.WriteString(conn, row.first)
		sent, frames := 0, strings.Repeat(row.frame, 100)
		for err == nil && sent < most {
			var n int
			n, err = io.WriteString(conn, frames)
			sent += n
		}
		if err == nil {
			t.Errorf("%s: %d bytes were taken", row.name, sent)
		}
	}
	conn := s.websocket(t, "/v3/lease/keepalive")
	const messages = 4000
	go func() {
		for range messages {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"ID":"7"}`))
		}
	}()
	for i := range messages {
		if _, got, err := conn.ReadMessage(); err != nil || !strings.Contains(string(got), `"ID":"7"`) {
			t.Fatalf("renewal %d: %s %v", i, got, err)
		}
	}
}
