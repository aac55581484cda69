package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// forwardBytes of a message are passed on at once.
	forwardBytes = 1 << 10
	// closePatience is how long a client may take to accept the last word.
	closePatience = 5 * time.Second
)

// upgrade makes a websocket of a request, or refuses it. Flooded is called if it is to end for what it brought.
func upgrade(
	w http.ResponseWriter, r *http.Request, allowedOrigin func(string) bool, flooded func(),
) (*socket, error) {
	upgrader := &websocket.Upgrader{
		ReadBufferSize: websocketBufferBytes, WriteBufferSize: websocketBufferBytes,
		CheckOrigin: func(r *http.Request) bool {
			origin := r.Header.Get("Origin")
			return origin == "" || allowedOrigin(origin)
		},
	}
	var header http.Header
	if strings.HasPrefix(r.Header.Get("Sec-WebSocket-Protocol"), "Bearer") {
		header = http.Header{"Sec-WebSocket-Protocol": []string{"Bearer"}}
	}
	return newSocket(w, func(w http.ResponseWriter) (*websocket.Conn, error) { return upgrader.Upgrade(w, r, header) }, flooded)
}

// forwarded are the headers of a websocket's request that its call sees. etcd forwards no others, and takes the token from
// elsewhere (tokenOf).
var forwarded = []string{"Origin", "Referer", "Authorization"}

// requestOf makes the request that a websocket's messages belong to.
func requestOf(r *http.Request) *http.Request {
	request := r.Clone(r.Context())
	request.Method, request.Header, request.ContentLength = http.MethodPost, make(http.Header), -1
	for _, name := range forwarded {
		if value := r.Header.Get(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	if token := tokenOf(r); token != "" {
		request.Header.Set("Authorization", token)
	}
	return request
}

// tokenOf is where scripts, which cannot set headers of websockets, put the token.
func tokenOf(r *http.Request) string {
	if cookie, err := r.Cookie("token"); err == nil {
		return "Bearer " + cookie.Value
	}
	if _, token, found := strings.Cut(r.Header.Get("Sec-WebSocket-Protocol"), "Bearer,"); found {
		return "Bearer " + strings.TrimSpace(token)
	}
	return ""
}

// ignored takes further messages of a client, for a call that takes one.
type ignored struct{ io.Writer }

// Close implements io.Closer.
func (ignored) Close() error { return nil }

// forwardRequests passes on what a client sends. When it goes, so does the call.
func forwardRequests(conn *socket, to io.WriteCloser, cancel context.CancelCauseFunc) {
	defer cancel(nil)
	defer to.Close()
	buffer := make([]byte, forwardBytes)
	for {
		message, err := conn.next()
		n := int64(0)
		if err == nil {
			n, err = io.CopyBuffer(to, message, buffer)
		}
		if errors.Is(err, errIdleBytes) {
			cancel(errIdleBytes) // the client is told
		}
		if err != nil {
			return
		}
		if n == 0 {
			continue
		}
		if _, err := to.Write([]byte{'\n'}); err != nil {
			return
		}
	}
}

// websocketAnswer sends each line that is written as a message. It holds what is written until its line is complete.
type websocketAnswer struct {
	conn   *socket
	end    context.CancelCauseFunc // for a client that has gone
	header http.Header
	line   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *websocketAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter: a websocket has no status.
func (*websocketAnswer) WriteHeader(int) {}

// Flush implements http.Flusher.
func (*websocketAnswer) Flush() {}

// Write implements http.ResponseWriter.
func (a *websocketAnswer) Write(p []byte) (int, error) {
	written := len(p)
	for {
		line, rest, complete := bytes.Cut(p, []byte{'\n'})
		a.line.Write(line)
		if !complete {
			return written, nil
		}
		if a.send() != nil {
			a.end(nil)
		}
		p = rest
	}
}

func (a *websocketAnswer) send() error {
	if a.line.Len() == 0 {
		return nil
	}
	patience := writePatience + time.Duration(a.line.Len()/writeBytes)*time.Second
	err := a.conn.SetWriteDeadline(time.Now().Add(patience))
	if err == nil {
		err = a.conn.say(a.line.Bytes())
	}
	if a.line.Reset(); a.line.Cap() > writeBytes {
		a.line = bytes.Buffer{} // a stream that is quiet for long keeps no memory of a large message
	}
	return err
}

// finish sends the last line, and says good-bye.
func (a *websocketAnswer) finish() {
	if a.send() == nil {
		bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = a.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(closePatience)) // the client may be gone
	}
}

// isWebsocket reports whether a request asks for a websocket.
func isWebsocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}
