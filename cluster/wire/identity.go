package wire

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Validity of node certificates. They begin a day early, so that clocks may differ by a day, and
// are renewed after half their life.
const (
	certBefore = 24 * time.Hour
	certAfter  = 48 * time.Hour
	certRenew  = 24 * time.Hour
)

// authority is the certificate authority of one cluster key: it signs and verifies the certificates
// of nodes.
type authority struct {
	key  Key
	sign ed25519.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

// newAuthority derives the authority of a key. Every node with the key derives the same signing
// key. The CA certificate itself is made afresh: only its name and its public key matter.
func newAuthority(key Key) (*authority, error) {
	a := &authority{key: key, sign: ed25519.NewKeyFromSeed(key.Derive("authority", ed25519.SeedSize))}
	t := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "shoal cluster key " + key.Fingerprint()},
		NotBefore:             time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}

	der, err := x509.CreateCertificate(rand.Reader, t, t, a.sign.Public(), a.sign)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}

	// Trust only this authority, none of the system's.
	a.pool = x509.NewCertPool()
	a.pool.AddCert(a.cert)
	return a, nil
}

// issueCertificate creates a certificate for a node.
func (a *authority) issueCertificate(p Peer, now time.Time) (*tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}

	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}

	// Valid from a day ago: the clocks of nodes differ.
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "shoal node"},
		NotBefore:    now.Add(-certBefore),
		NotAfter:     now.Add(certAfter),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		URIs:         []*url.URL{p.uri()},
	}

	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, public, a.sign)
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}

const noCluster = "-" // in certificates, the cluster of a node without one

// uri returns the identity in the form used in certificates:
//
//	shoal://CLUSTER/NODE/EPOCH/BOOT      as shoal://c41/n1/7/XJ4Q
func (p Peer) uri() *url.URL {
	cluster := p.Cluster
	if cluster == "" {
		cluster = noCluster
	}
	return &url.URL{Scheme: "shoal", Host: cluster, Path: "/" + p.Node + "/" + strconv.FormatUint(p.Epoch, 10) + "/" + p.Boot}
}

// check returns an error if the identity cannot be written into a certificate.
func (p Peer) check() error {
	for _, s := range []string{p.Cluster, p.Node, p.Boot} {
		if len(s) > 100 || s == noCluster || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return fmt.Errorf("identity %q: expected at most 100 letters, digits, - and _", s)
		}
	}
	if p.Node == "" {
		return errors.New("identity: the node has no id")
	}
	return nil
}

// peerOf parses the identity in a certificate.
func peerOf(cert *x509.Certificate) (Peer, error) {
	if len(cert.URIs) != 1 {
		return Peer{}, fmt.Errorf("the certificate names %d identities, expected one", len(cert.URIs))
	}

	u := cert.URIs[0]
	path := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	if u.Scheme != "shoal" || len(path) != 3 {
		return Peer{}, errors.New("the certificate names no node")
	}

	// The epoch tells an old process of a node from its successor.
	epoch, err := strconv.ParseUint(path[1], 10, 64)
	if err != nil {
		return Peer{}, errors.New("the certificate names no start of the node")
	}

	p := Peer{Cluster: u.Host, Node: path[0], Epoch: epoch, Boot: path[2]}
	if p.Cluster == noCluster {
		p.Cluster = ""
	}

	// Check the ids, as at issue: they are displayed and compared everywhere.
	return p, p.check()
}

// ring holds the valid keys and the certificate of this node.
type ring struct {
	now func() time.Time

	mu    sync.Mutex // guards the fields below
	self  Peer
	auths []*authority // the first one issues
	leaf  *tls.Certificate
	renew time.Time // when to renew leaf
}

func newRing(self Peer, keys Keys, now func() time.Time) (*ring, error) {
	if err := self.check(); err != nil {
		return nil, err
	}
	r := &ring{now: now, self: self}
	return r, r.setKeys(keys)
}

// setKeys replaces the accepted cluster keys.
func (r *ring) setKeys(keys Keys) error {
	if len(keys) == 0 {
		return errors.New("no cluster key")
	}

	var auths []*authority
	for _, k := range keys {
		a, err := newAuthority(k)
		if err != nil {
			return err
		}
		auths = append(auths, a)
	}

	// Drop the present certificate: the next handshake issues one under the first key.
	r.mu.Lock()
	defer r.mu.Unlock()
	r.auths, r.leaf = auths, nil
	return nil
}

// accepts reports whether a key is still accepted.
func (r *ring) accepts(k Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.auths {
		if a.key == k {
			return true
		}
	}
	return false
}

// setCluster sets the cluster in this node's certificates.
func (r *ring) setCluster(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	p := r.self
	p.Cluster = id
	if err := p.check(); err != nil {
		return err
	}
	r.self, r.leaf = p, nil
	return nil
}

func (r *ring) me() Peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.self
}

// certificate returns the certificate of this node. It is renewed after half its life.
func (r *ring) certificate() (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	// Also renew it if the clock was set back: other nodes would reject a certificate from the
	// future.
	now := r.now()
	if r.leaf != nil && now.Before(r.renew) && now.After(r.renew.Add(-certRenew-certBefore/2)) {
		return r.leaf, nil
	}

	leaf, err := r.auths[0].issueCertificate(r.self, now)
	if err != nil {
		return nil, err
	}
	r.leaf, r.renew = leaf, now.Add(certRenew)
	return leaf, nil
}

// verify returns the identity in a certificate, and the key of its authority.
func (r *ring) verify(certs []*x509.Certificate) (Peer, Key, error) {
	if len(certs) != 1 {
		return Peer{}, Key{}, fmt.Errorf("%d certificates, expected one", len(certs))
	}

	r.mu.Lock()
	auths := r.auths
	r.mu.Unlock()

	now := r.now()

	// Any of the valid keys may have signed it.
	for _, a := range auths {
		_, err := certs[0].Verify(x509.VerifyOptions{
			Roots: a.pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		})
		if err == nil {
			p, err := peerOf(certs[0])
			return p, a.key, err
		}

		// If it is only expired, the key was right, and the clocks differ.
		var invalid x509.CertificateInvalidError
		if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
			return Peer{}, Key{}, fmt.Errorf("the certificate is not valid at %s here; the clocks of the nodes differ by more than a day", now.UTC().Format(time.RFC3339))
		}
	}
	return Peer{}, Key{}, fmt.Errorf("%w: the certificate was made under it", ErrOtherKey)
}

// tlsConfig returns the TLS configuration of both sides. verify replaces the standard checks, which
// are made for host names.
func (r *ring) tlsConfig(protocols ...Protocol) *tls.Config {
	c := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // VerifyConnection does it
		SessionTicketsDisabled: true,
		Time:                   r.now,

		// Functions, because a certificate is renewed while the port is open.
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.certificate() },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return r.certificate() },
		VerifyConnection: func(s tls.ConnectionState) error {
			_, _, err := r.verify(s.PeerCertificates)
			return err
		},
	}

	for _, p := range protocols {
		c.NextProtos = append(c.NextProtos, string(p))
	}
	return c
}
