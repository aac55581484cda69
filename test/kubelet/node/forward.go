package node

import (
	"context"
	"io"
	"net"
	"net/http"

	"k8s.io/cri-streaming/pkg/streaming/portforward"

	"github.com/quorate/quorate/test/kubelet/network"
)

// A finder returns the worker of a pod that runs here; nil if it does not.
type finder func(namespace, name string) *worker

// forward answers a call for ports of a pod.
func (find finder) forward(out http.ResponseWriter, in *http.Request) {
	name := in.PathValue("pod")
	var sandbox *network.Sandbox
	if w := find(in.PathValue("namespace"), name); w != nil {
		sandbox = w.network.Load()
	}
	if sandbox == nil {
		http.Error(out, "this node does not run the pod", http.StatusNotFound)
		return
	}
	options, err := portforward.NewV4Options(in)
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(out, in, forwarder{sandbox}, name, "", options, idleTime, callTime,
		portforward.SupportedProtocols)
}

// A forwarder leads to ports of one pod.
type forwarder struct{ sandbox *network.Sandbox }

// PortForward copies between a stream and a port, as container runtimes do: it connects to the loopback address in the pod's
// network, so a program that listens only at the pod's own address is not reached.
func (f forwarder) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	conn, err := f.sandbox.Dial(int(port))
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		io.Copy(conn, stream)
		conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	return err
}
