package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/google/go-containerregistry/pkg/name"
)

// image is the input of an image.
type image struct{ version, arch, root, program string }

// writeImage writes an image for `docker load` and `podman load`.
func writeImage(i image, path string) error {
	seconds, err := epoch()
	if err != nil {
		return err
	}
	made := v1.Time{Time: time.Unix(seconds, 0).UTC()}
	if err := checkPrograms(i.root, i.arch); err != nil {
		return err
	}
	root, err := tarball.LayerFromFile(i.root)
	if err != nil {
		return err
	}
	program, err := programLayer(i.program, made.Time)
	if err != nil {
		return err
	}
	img, err := mutate.Append(empty.Image,
		mutate.Addendum{Layer: root, History: v1.History{Created: made, CreatedBy: "Debian with git and universal-ctags"}},
		mutate.Addendum{Layer: program, History: v1.History{Created: made, CreatedBy: "shoal " + i.version}})
	if err != nil {
		return err
	}
	img, err = mutate.ConfigFile(img, i.config(img, made))
	if err != nil {
		return err
	}
	tag, err := name.NewTag("shoal:" + i.version)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(path, tag, img)
}

// config returns the configuration of a container: an unprivileged user and one volume.
func (i image) config(img v1.Image, made v1.Time) *v1.ConfigFile {
	c, err := img.ConfigFile()
	if err != nil {
		panic(err) // an image in memory has a config
	}
	c = c.DeepCopy()
	c.Architecture, c.OS, c.Created = i.arch, "linux", made
	c.Config = v1.Config{
		User:       "7700:7700",
		Entrypoint: []string{"/usr/bin/shoal"},
		Cmd:        []string{"serve"},
		WorkingDir: "/var/lib/shoal",
		Volumes:    map[string]struct{}{"/var/lib/shoal": {}},
		Env: []string{
			"PATH=/usr/local/bin:/usr/bin:/bin", "CONFIG_PATH=/etc/shoal/shoal.json",
			"SHOAL_DATA_DIR=/var/lib/shoal", "SHOAL_LISTEN=0.0.0.0:7700",
		},
		ExposedPorts: map[string]struct{}{"7700/tcp": {}, "7701/tcp": {}, "7702/tcp": {}, "7702/udp": {}},
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/usr/bin/shoal", "status", "--data-dir", "/var/lib/shoal"},
			Interval: 30 * time.Second, Timeout: 10 * time.Second, StartPeriod: 2 * time.Minute, Retries: 3,
		},
		StopSignal: "SIGTERM",
		Labels:     map[string]string{"org.opencontainers.image.title": "shoal", "org.opencontainers.image.version": i.version, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return c
}

// programLayer returns a layer that only has the program.
func programLayer(path string, made time.Time) (v1.Layer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "usr/bin/shoal", Mode: 0o755, Size: int64(len(text)), ModTime: made, Format: tar.FormatUSTAR}); err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
}

// machines has the kinds of machines that images are for, as programs name them.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkPrograms returns an error if a tarball has programs of another kind of machine than arch, or
// none of arch.
func checkPrograms(path, arch string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	found := false
	for r := tar.NewReader(file); ; {
		h, err := r.Next()
		switch {
		case err == io.EOF && !found:
			return fmt.Errorf("%s has no program for %s", path, arch)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}

		head := make([]byte, 20)
		if _, err := io.ReadFull(r, head); err != nil || string(head[:4]) != elf.ELFMAG {
			continue // a short file, or no program
		}
		if m := elf.Machine(binary.LittleEndian.Uint16(head[18:])); m != machines[arch] {
			return fmt.Errorf("%s in %s is a program for %s, not for %s", h.Name, path, m, arch)
		}
		found = true
	}
}
