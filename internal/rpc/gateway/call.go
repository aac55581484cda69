package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
)

// call is one request while it is served.
type call struct {
	mux           *runtime.ServeMux
	turns         *hostCalls
	intake        *intake
	allowedOrigin func(origin string) bool
	hosts         Hosts
	from          net.Addr                // the client's
	host          string                  // that of from
	end           context.CancelCauseFunc // ends the call, with the status that the client gets
}

// manyMessages reports whether a client may send several messages in one request to a path.
func manyMessages(path string) bool { return path == "/v3/watch" || path == "/v3/lease/keepalive" }

// isStream reports whether the answer to a path is a stream.
func isStream(path string) bool {
	return manyMessages(path) || path == "/v3/maintenance/snapshot" || path == "/v3/election/observe"
}

func (c *call) serve(w http.ResponseWriter, r *http.Request) {
	if manyMessages(r.URL.Path) {
		place, err := c.intake.openStream(c.host)
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		defer place.leave()
		stop := func() { _ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) } // where it fails, the read does
		r.Body = newMessages(newAhead(r.Context(), r.Body, c.end), place, c.end, stop)
	} else {
		// It is read before its turn comes: HTTP/1 shows only then whether the client waits for an answer still.
		leave, err := c.intake.readBody(w, r, c.host)
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		defer leave()
	}
	c.run(w, r)
}

// run makes the call when it is its turn.
func (c *call) run(w http.ResponseWriter, r *http.Request) {
	leave, err := c.turns.enter(r.Context(), c.host)
	if err != nil {
		return // the client has gone
	}
	defer leave()
	c.mux.ServeHTTP(w, r)
}

// refuse answers in the form of all errors here.
func (c *call) refuse(w http.ResponseWriter, r *http.Request, err error) {
	_, out := runtime.MarshalerForRequest(c.mux, r)
	runtime.HTTPError(r.Context(), c.mux, out, w, r, err)
}

// serveWebsocket makes the messages of a websocket the body of a request, and each line of the answer a message. A call that
// takes one message takes the first.
func (c *call) serveWebsocket(w http.ResponseWriter, r *http.Request) {
	if !c.hosts.Admits(c.from) {
		c.refuse(w, r, errFlooding)
		return
	}
	conn, err := upgrade(w, r, c.allowedOrigin, func() { c.hosts.Add(c.from, floodRequests) })
	if err != nil {
		return // it was answered
	}
	defer conn.Close()
	requests, arriving := io.Pipe()
	defer requests.Close()
	request := requestOf(r)
	answer := &websocketAnswer{conn: conn, end: c.end, header: make(http.Header)}
	defer answer.finish()
	var further io.WriteCloser = ignored{io.Discard}
	if manyMessages(r.URL.Path) {
		place, err := c.intake.openStream(c.host)
		if err != nil {
			c.refuse(answer, request, err)
			return
		}
		defer place.leave()
		conn.SetReadLimit(maxStreamMessageBytes)
		stop := func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) }
		request.Body, further = newMessages(newAhead(r.Context(), requests, c.end), place, c.end, stop), arriving
	} else {
		leave, err := c.intake.readMessage(conn, request, c.host)
		if err != nil {
			c.refuse(answer, request, err)
			return
		}
		defer leave()
	}
	go forwardRequests(conn, further, c.end) // or wait for the client to go
	c.run(answer, request)
}
