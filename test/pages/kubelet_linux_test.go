package pages_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kms "k8s.io/kms/apis/v2"
	"sigs.k8s.io/yaml"
)

// kubeadmItself is the name under which the machines have kubeadm.
const kubeadmItself = "kubeadm-itself"

// lacking are the checks of kubeadm that a machine of a test cannot pass: it has no runtime of containers and no images of its
// own, and its kernel, memory and swap are those of the machine of the test. The check of the external etcd is none of them.
const lacking = "CRI,ContainerRuntimeVersion,SystemVerification,ImagePull,Swap,Mem,NumCPU,Hostname"

// kubeadm runs kubeadm, which passes over the checks that a machine of a test cannot pass.
func kubeadm(args []string) error {
	path, err := exec.LookPath(kubeadmItself)
	if err != nil {
		return err
	}
	checks := len(args) == 1 || len(args) > 1 && args[1] != "phase" || slices.Contains(args, "preflight")
	if len(args) > 0 && (args[0] == "init" || args[0] == "upgrade") && checks {
		args = append(args, "--ignore-preflight-errors="+lacking)
	}
	return syscall.Exec(path, append([]string{"kubeadm"}, args...), os.Environ())
}

// kubeletUnit answers for the unit kubelet, if the words are about it or about systemd itself.
func kubeletUnit(words string) (done bool, err error) {
	switch strings.ReplaceAll(words, ".service", "") {
	case "daemon-reload", "is-enabled kubelet":
		return true, nil
	case "status kubelet":
		_, err = fmt.Println("Loaded: loaded")
		return true, err
	case "is-active kubelet":
		_, err = os.Stat(stateFile("kubelet"))
		return true, err
	case "stop kubelet":
		return true, stopKubelet()
	case "start kubelet", "restart kubelet":
		return true, errors.Join(stopKubelet(), startKubelet())
	case "is-active firewalld", "status firewalld":
		return true, errors.New("there is no firewalld")
	}
	return false, nil
}

func startKubelet() error {
	log, err := os.Create(stateFile("kubelet-journal"))
	if err != nil {
		return err
	}
	unit := exec.Command("kubelet")
	unit.Stdout, unit.Stderr, unit.SysProcAttr = log, log, &syscall.SysProcAttr{Setsid: true}
	if err := unit.Start(); err != nil {
		return err
	}
	return os.WriteFile(stateFile("kubelet"), fmt.Append(nil, unit.Process.Pid), 0o600)
}

// stopKubelet kills the kubelet and, unlike a true one's end, its pods.
func stopKubelet() error {
	text, err := os.ReadFile(stateFile("kubelet"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		return err
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended by itself
	return os.Remove(stateFile("kubelet"))
}

// kubelet is what kubeadm wants of a kubelet: it answers /healthz, makes the node, and runs the static pods, as processes.
func kubelet(args []string) error {
	if slices.Equal(args, []string{"--version"}) {
		version := exec.Command("kube-apiserver", "--version")
		version.Stdout = os.Stdout
		return version.Run()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:10248")
	if err != nil {
		return err
	}
	healthy := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }
	go func() { _ = http.Serve(listener, http.HandlerFunc(healthy)) }()
	pods, node := map[string]*staticPod{}, false
	for tick := time.NewTicker(time.Second); ; <-tick.C {
		files, err := filepath.Glob("/etc/kubernetes/manifests/*.yaml")
		if err != nil {
			return err
		}
		for name, pod := range pods {
			if !slices.Contains(files, name) {
				pod.stop()
				delete(pods, name)
			}
		}
		for _, name := range files {
			if pods[name] == nil {
				pods[name] = &staticPod{file: name}
			}
			if err := pods[name].run(); err != nil {
				fmt.Fprintln(os.Stderr, name, err)
			}
		}
		if !node {
			node = makeNode() == nil
		}
	}
}

// makeNode makes the object of the node, as the kubelet's user.
func makeNode() error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	create := exec.Command("kubectl", "--kubeconfig", "/etc/kubernetes/kubelet.conf", "apply", "-f", "-")
	create.Stdin = strings.NewReader(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q, "labels": {"kubernetes.io/hostname": %q}}}`,
		name, name))
	return create.Run()
}

// staticPod is a file of a pod and its process.
type staticPod struct {
	file  string
	text  []byte
	cmd   *exec.Cmd
	ended chan struct{}
}

// run starts the process if it has ended, or if the file is another one.
func (p *staticPod) run() error {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return err
	}
	if p.cmd != nil && bytes.Equal(text, p.text) {
		select {
		case <-p.ended:
		default:
			return nil
		}
	}
	var pod struct {
		Spec struct {
			Containers []struct{ Command, Args []string }
		}
	}
	if err := yaml.Unmarshal(text, &pod); err != nil {
		return err
	}
	if len(pod.Spec.Containers) != 1 {
		return fmt.Errorf("%d containers", len(pod.Spec.Containers))
	}
	p.stop()
	words := slices.Concat(pod.Spec.Containers[0].Command, pod.Spec.Containers[0].Args)
	name := strings.TrimSuffix(filepath.Base(p.file), ".yaml")
	log, err := os.OpenFile("/var/log/"+name+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "KUBE_WATCHCACHE_CONSISTENCY_CHECKER=true") // the API server ends where a cache is not its store
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	p.text, p.cmd, p.ended = text, cmd, ended
	return nil
}

// stop ends the process, within the grace of 30 seconds of a pod.
func (p *staticPod) stop() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	p.cmd = nil
}

// kmsPlugin is a key service of Kubernetes at a socket, with a key that it forgets when it ends.
func kmsPlugin(args []string) error {
	if len(args) != 1 {
		return errors.New("kms-plugin SOCKET")
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", args[0])
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	kms.RegisterKeyManagementServiceServer(server, keyService{box: box})
	return server.Serve(listener)
}

type keyService struct {
	kms.UnimplementedKeyManagementServiceServer
	box cipher.AEAD
}

func (keyService) Status(context.Context, *kms.StatusRequest) (*kms.StatusResponse, error) {
	return &kms.StatusResponse{Version: "v2", Healthz: "ok", KeyId: "key-1"}, nil
}

func (s keyService) Encrypt(_ context.Context, r *kms.EncryptRequest) (*kms.EncryptResponse, error) {
	return &kms.EncryptResponse{KeyId: "key-1", Ciphertext: s.box.Seal(nil, nil, r.GetPlaintext(), nil)}, nil
}

func (s keyService) Decrypt(_ context.Context, r *kms.DecryptRequest) (*kms.DecryptResponse, error) {
	plain, err := s.box.Open(nil, nil, r.GetCiphertext(), nil)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &kms.DecryptResponse{Plaintext: plain}, nil
}
