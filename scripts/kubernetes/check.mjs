// Usage: node scripts/kubernetes/check.mjs PACKAGES FILE… [--like FILE]
//
// Checks manifests without a cluster: against the schemas of Kubernetes and, since
// those let unknown fields pass, against its types; and that what one names of
// another is there. PACKAGES is where package.json beside this is installed. With
// --like they must also say what that file says, apart from labels and annotations
// that a chart adds, comments, and what a field is by default.
import { createRequire } from 'node:module'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { spawnSync } from 'node:child_process'
import { isDeepStrictEqual } from 'node:util'

const [packages, ...files] = process.argv.slice(2)
const like = files.includes('--like') ? files.splice(files.indexOf('--like'))[1] : ''
const require = createRequire(resolve(packages, 'x.js'))
const { parseAllDocuments } = require('yaml')
const wrong = []
const say = (o, text) => wrong.push(`${o?.kind} ${o?.metadata?.name}: ${text}`)

const read = file => parseAllDocuments(readFileSync(file, 'utf8')).map(d => {
	if (d.errors.length || d.warnings.length) throw new Error(`${file}: ${[...d.errors, ...d.warnings]}`)
	return d.toJS()
})
const all = files.flatMap(read)
let typed = ''
for (const [i, o] of all.entries()) {
	const at = `kubernetes-models/${o.apiVersion}/${o.kind}`
	try {
		new (require(at)[o.kind])(o).validate()
	} catch (e) {
		say(o, e.message)
	}
	typed += `import { I${o.kind} as T${i} } from '${at}'\nexport const o${i}: T${i} = ${JSON.stringify(o, null, 1)}\n`
}
writeFileSync(join(packages, 'manifests.ts'), typed)
const tsc = spawnSync(process.execPath, [require.resolve('typescript/bin/tsc'), '--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', 'manifests.ts'], { cwd: packages, encoding: 'utf8' })
if (tsc.status !== 0) wrong.push(tsc.stdout + tsc.stderr)

const named = kind => new Map(all.filter(o => o.kind === kind).map(o => [o.metadata.name, o]))
const [maps, services, claims] = [named('ConfigMap'), named('Service'), named('PersistentVolumeClaim')]
const template = [...named('Deployment').values()][0].spec.template
const selects = selector => Object.entries(selector).every(([k, v]) => template.metadata.labels[k] === v)
for (const o of all) {
	const selector = o.kind === 'Service' ? o.spec.selector : o.spec?.selector?.matchLabels
	if (selector && !selects(selector)) say(o, 'selects no pod')
	for (const p of o.kind === 'Service' ? o.spec.ports : []) {
		if (!template.spec.containers.some(c => c.ports.some(q => q.name === p.targetPort))) say(o, `no container has port ${p.targetPort}`)
	}
	for (const path of o.spec?.rules?.flatMap(r => r.http.paths) ?? []) {
		const { name, port } = path.backend.service
		if (!services.get(name)?.spec.ports.some(p => p.name === port.name)) say(o, `no service ${name} with port ${port.name}`)
	}
	for (const v of o.spec?.template?.spec.volumes ?? []) {
		if (v.configMap && !maps.has(v.configMap.name)) say(o, `no ConfigMap ${v.configMap.name}`)
		const claim = v.persistentVolumeClaim?.claimName
		if (claim && !claims.has(claim)) say(o, `no PersistentVolumeClaim ${claim}`)
	}
	for (const c of o.spec?.template?.spec.containers ?? []) {
		const volumes = o.spec.template.spec.volumes.map(v => v.name)
		for (const m of c.volumeMounts) if (!volumes.includes(m.name)) say(o, `no volume ${m.name}`)
		for (const probe of [c.startupProbe, c.livenessProbe, c.readinessProbe]) {
			if (!c.ports.some(p => p.name === probe.httpGet.port)) say(o, `a probe of port ${probe.httpGet.port}`)
		}
	}
}
// shape is what an object says, in an order of its own.
const shape = o => {
	const copy = structuredClone(o)
	delete copy.metadata.labels
	if (copy.kind === 'ConfigMap') for (const k in copy.data) copy.data[k] = copy.data[k].split('\n').filter(l => l && !l.startsWith('#')).sort().join('\n')
	if (copy.kind === 'Deployment') {
		delete copy.spec.template.metadata.annotations
		for (const c of copy.spec.template.spec.containers) if (c.imagePullPolicy === 'IfNotPresent') delete c.imagePullPolicy
	}
	return copy
}
if (like) {
	const wanted = read(like)
	const key = o => `${o.kind} ${o.metadata.name}`
	for (const o of wanted) {
		const got = all.find(other => key(other) === key(o))
		if (!got) say(o, `it is in ${like} alone`)
		else if (!isDeepStrictEqual(shape(got), shape(o))) say(o, `it differs from ${like}: ${JSON.stringify(shape(got))}\nwant ${JSON.stringify(shape(o))}`)
	}
	for (const o of all) if (!wanted.some(other => key(other) === key(o))) say(o, `it is not in ${like}`)
}
if (wrong.length) {
	console.error(wrong.join('\n'))
	process.exit(1)
}
console.log(`kubernetes: ok: ${all.map(o => o.kind).join(', ')}`)
