package plane

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Addresses of services: the whole range, and the API server's, which is its first.
const (
	ServiceRange = "10.96.0.0/16"
	apiService   = "10.96.0.1"
)

// Times that are shorter than Kubernetes' own, so that a scenario ends in this minute: how long a node may be silent, and
// how long pods stay on one that is silent.
const (
	nodeGrace      = "8s"
	evictAfter     = "5"
	startTime      = 2 * time.Minute
	pollReadyEvery = 100 * time.Millisecond
)

// Options of a control plane.
type Options struct {
	Directory string // for its files; it stays there
	Binaries  string // the directory of kube-apiserver and the others
	Quorate   string // the binary that serves as etcd
	Members   int    // of Quorate: 1 or 3
	Address   string // at which pods reach the API server
	Audited   string // the namespace whose service accounts' calls are recorded
}

// A Plane is a control plane that runs.
type Plane struct {
	Kubeconfig string // of an administrator
	Config     *rest.Config
	Client     kubernetes.Interface
	ServingCA  string // file of the authority that signed the API server's certificate
	Audit      string // file with a line for each call of the accounts in Options.Audited

	started                       time.Time
	members                       []*process
	server, controller, scheduler *process
}

type certificates struct {
	ca                              *Authority
	etcdCA                          *Authority
	etcd, api, account, front       Files
	administrator, manager, planner Files
}

// Start starts everything and waits until the API server is ready.
func Start(ctx context.Context, o Options) (*Plane, error) {
	if err := os.MkdirAll(o.Directory, 0o755); err != nil {
		return nil, err
	}
	certs, err := issueAll(o)
	if err != nil {
		return nil, fmt.Errorf("certificates cannot be made: %w", err)
	}
	p := &Plane{ServingCA: certs.ca.files.Cert, Audit: filepath.Join(o.Directory, "audit.log")}
	if err := os.WriteFile(auditPolicy(o), fmt.Appendf(nil, auditRules, o.Audited), 0o644); err != nil {
		return nil, err
	}
	p.members = etcds(o, certs)
	for _, m := range p.members {
		if err := m.start(); err != nil {
			return nil, err
		}
	}
	p.server = newProcess(o.Directory, "kube-apiserver", filepath.Join(o.Binaries, "kube-apiserver"), serverFlags(o,
		certs)...)
	if err := p.server.start(); err != nil {
		return nil, err
	}
	url := "https://" + o.Address + ":6443"
	p.Kubeconfig = filepath.Join(o.Directory, "admin.kubeconfig")
	manager, planner := filepath.Join(o.Directory, "manager.kubeconfig"), filepath.Join(o.Directory, "scheduler.kubeconfig")
	err = errors.Join(kubeconfig(p.Kubeconfig, url, certs.ca.files.Cert, certs.administrator),
		kubeconfig(manager, url, certs.ca.files.Cert, certs.manager), kubeconfig(planner, url, certs.ca.files.Cert,
			certs.planner))
	if err != nil {
		return nil, err
	}
	if p.Config, err = clientcmd.BuildConfigFromFlags("", p.Kubeconfig); err != nil {
		return nil, err
	}
	p.Config.QPS, p.Config.Burst = 200, 400
	if p.Client, err = kubernetes.NewForConfig(p.Config); err != nil {
		return nil, err
	}
	if err := p.AwaitReady(ctx); err != nil {
		return nil, err
	}
	p.controller = newProcess(o.Directory, "kube-controller-manager", filepath.Join(o.Binaries, "kube-controller-manager"),
		"--kubeconfig="+manager, "--authentication-kubeconfig="+manager, "--authorization-kubeconfig="+manager,
		"--service-account-private-key-file="+certs.account.Key, "--root-ca-file="+certs.ca.files.Cert,
		"--use-service-account-credentials", "--controllers=*", "--leader-elect=false",
		"--node-monitor-grace-period="+nodeGrace,
		"--node-monitor-period=1s", "--bind-address=127.0.0.1", "--pvclaimbinder-sync-period=5s", "--profiling=false")
	p.scheduler = newProcess(o.Directory, "kube-scheduler", filepath.Join(o.Binaries, "kube-scheduler"),
		"--kubeconfig="+planner, "--authentication-kubeconfig="+planner, "--authorization-kubeconfig="+planner,
		"--leader-elect=false", "--bind-address=127.0.0.1", "--profiling=false")
	return p, errors.Join(p.controller.start(), p.scheduler.start())
}

// AwaitReady waits until the API server is ready.
func (p *Plane) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	ticker := time.NewTicker(pollReadyEvery)
	defer ticker.Stop()
	for {
		err := p.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		if err == nil {
			return nil
		}
		select {
		case <-p.server.ended:
			return fmt.Errorf("kube-apiserver ended; see %s", p.server.log)
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready after %v: %w; see %s", startTime, err, p.server.log)
		case <-ticker.C:
		}
	}
}

// StopAPI kills the API server. StartAPI starts it again.
func (p *Plane) StopAPI() { p.server.kill() }

// Started is when the API server was started last.
func (p *Plane) Started() time.Time { return p.started }

// StartAPI starts the API server again and waits until it is ready.
func (p *Plane) StartAPI(ctx context.Context) error {
	p.started = time.Now()
	if err := p.server.start(); err != nil {
		return err
	}
	return p.AwaitReady(ctx)
}

// Stop kills all processes.
func (p *Plane) Stop() {
	for _, one := range append([]*process{p.scheduler, p.controller, p.server}, p.members...) {
		one.kill()
	}
}

func issueAll(o Options) (*certificates, error) {
	directory := filepath.Join(o.Directory, "pki")
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	var c certificates
	var err, failed error
	if c.ca, err = NewAuthority(directory, "ca"); err != nil {
		return nil, err
	}
	if c.etcdCA, err = NewAuthority(directory, "etcd-ca"); err != nil {
		return nil, err
	}
	issue := func(a *Authority, file string, subject pkix.Name, hosts ...string) Files {
		files, err := a.Issue(file, subject, hosts...)
		failed = errors.Join(failed, err)
		return files
	}
	c.etcd = issue(c.etcdCA, "etcd", pkix.Name{CommonName: "etcd"}, "127.0.0.1", "localhost")
	c.api = issue(c.ca, "apiserver", pkix.Name{CommonName: "kube-apiserver"}, o.Address, apiService, "127.0.0.1", "localhost",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	c.account = issue(c.ca, "service-account", pkix.Name{CommonName: "service-account"})
	c.front = issue(c.ca, "front-proxy", pkix.Name{CommonName: "front-proxy-client"})
	c.administrator = issue(c.ca, "admin", pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}})
	c.manager = issue(c.ca, "manager", pkix.Name{CommonName: "system:kube-controller-manager"})
	c.planner = issue(c.ca, "scheduler", pkix.Name{CommonName: "system:kube-scheduler"})
	return &c, failed
}

func etcds(o Options, c *certificates) []*process {
	name := func(i int) string { return fmt.Sprintf("etcd-%d", i) }
	peer := func(i int) string { return fmt.Sprintf("https://127.0.0.1:%d", 23800+i) }
	var founders []string
	for i := range o.Members {
		founders = append(founders, name(i)+"="+peer(i))
	}
	var all []*process
	for i := range o.Members {
		client := fmt.Sprintf("https://127.0.0.1:%d", 23790+i)
		all = append(all, newProcess(o.Directory, name(i), o.Quorate, "--name="+name(i),
			"--data-dir="+filepath.Join(o.Directory, name(i)),
			"--listen-client-urls="+client, "--advertise-client-urls="+client, "--listen-peer-urls="+peer(i),
			"--initial-advertise-peer-urls="+peer(i), "--initial-cluster="+strings.Join(founders, ","), "--memory=512MiB",
			"--watch-progress-notify-interval=5s",
			"--cert-file="+c.etcd.Cert, "--key-file="+c.etcd.Key, "--trusted-ca-file="+c.etcdCA.files.Cert,
			"--client-cert-auth",
			"--peer-cert-file="+c.etcd.Cert, "--peer-key-file="+c.etcd.Key, "--peer-trusted-ca-file="+c.etcdCA.files.Cert,
			"--peer-client-cert-auth"))
	}
	return all
}

func serverFlags(o Options, c *certificates) []string {
	var servers []string
	for i := range o.Members {
		servers = append(servers, fmt.Sprintf("https://127.0.0.1:%d", 23790+i))
	}
	return []string{
		"--etcd-servers=" + strings.Join(servers, ","), "--etcd-cafile=" + c.etcdCA.files.Cert,
		"--etcd-certfile=" + c.etcd.Cert,
		"--etcd-keyfile=" + c.etcd.Key, "--bind-address=" + o.Address, "--advertise-address=" + o.Address,
		"--secure-port=6443",
		"--tls-cert-file=" + c.api.Cert, "--tls-private-key-file=" + c.api.Key, "--client-ca-file=" + c.ca.files.Cert,
		"--service-cluster-ip-range=" + ServiceRange, "--authorization-mode=Node,RBAC", "--allow-privileged",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + c.account.Cert,
		"--service-account-signing-key-file=" + c.account.Key, "--requestheader-client-ca-file=" + c.ca.files.Cert,
		"--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.front.Cert, "--proxy-client-key-file=" + c.front.Key,
		"--default-not-ready-toleration-seconds=" + evictAfter, "--default-unreachable-toleration-seconds=" + evictAfter,
		"--kubelet-preferred-address-types=InternalIP", "--profiling=false",
		"--audit-policy-file=" + auditPolicy(o), "--audit-log-path=" + filepath.Join(o.Directory, "audit.log"),
	}
}

// auditRules record which calls the accounts of a namespace make, and nothing of what is in them.
const auditRules = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["system:serviceaccounts:%s"]}
- {level: None}
`

func auditPolicy(o Options) string { return filepath.Join(o.Directory, "audit.yaml") }

func kubeconfig(path, url, ca string, files Files) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["ground"] = &clientcmdapi.Cluster{Server: url, CertificateAuthority: ca}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificate: files.Cert, ClientKey: files.Key}
	config.Contexts["ground"] = &clientcmdapi.Context{Cluster: "ground", AuthInfo: "user"}
	config.CurrentContext = "ground"
	return clientcmd.WriteToFile(*config, path)
}
