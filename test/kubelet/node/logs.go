package node

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// logs answers a call for what a container wrote.
func (find finder) logs(out http.ResponseWriter, in *http.Request) {
	name, container := in.PathValue("pod"), in.PathValue("container")
	asked, err := askedLog(in.URL.Query())
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	w := find(in.PathValue("namespace"), name)
	if w == nil {
		http.Error(out, "this node does not run the pod", http.StatusNotFound)
		return
	}
	var found *output
	err = w.ask(in.Context(), func() {
		all := w.written[container]
		if last := len(all) - 1; asked.previous && last > 0 {
			found = all[last-1]
		} else if !asked.previous && last >= 0 {
			found = all[last]
		}
	})
	if err != nil || found == nil {
		http.Error(out, fmt.Sprintf("the container %s of %s has no such run", container, name), http.StatusBadRequest)
		return
	}
	out.Header().Set("Content-Type", "text/plain")
	found.copy(in.Context(), flusher{out}, asked)
}

func askedLog(query url.Values) (logRequest, error) {
	asked := logRequest{tail: -1}
	for name := range query {
		value := query.Get(name)
		var err error
		switch name {
		case "follow":
			asked.follow, err = strconv.ParseBool(value)
		case "previous":
			asked.previous, err = strconv.ParseBool(value)
		case "tailLines":
			asked.tail, err = strconv.Atoi(value)
		case "stream":
			if value != "All" {
				err = errors.New("this kubelet keeps one log for both streams")
			}
		default:
			err = errors.New("this kubelet does not know it")
		}
		if err != nil {
			return asked, fmt.Errorf("%s=%s: %w", name, value, err)
		}
	}
	return asked, nil
}

// A flusher sends each write at once.
type flusher struct{ http.ResponseWriter }

func (f flusher) Write(text []byte) (int, error) {
	n, err := f.ResponseWriter.Write(text)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}
