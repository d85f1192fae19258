{{/* Rules of the ClusterRole, by mode and permissions. */}}

{{/* Whether a gate is on, by its name or with all gates of its stage. Argument: (list featureGates gate stageGate). */}}
{{- define "extender.isEnabled" -}}
{{- if dig (index . 1) (dig (index . 2) false (index . 0)) (index . 0) }}true{{ end -}}
{{- end -}}

{{- define "extender.hasGenericWorkload" -}}
{{- $stage := ternary "AllAlpha" "AllBeta" (eq (include "extender.emulatedVersion" .) "1.36") -}}
{{- include "extender.isEnabled" (list .Values.scheduler.featureGates "GenericWorkload" $stage) -}}
{{- end -}}

{{/* Objects that the scheduler watches. */}}
{{- define "extender.readingRules" -}}
- apiGroups: [""]
  resources: [namespaces, nodes, persistentvolumeclaims, persistentvolumes, pods, replicationcontrollers, services]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [csidrivers, csinodes, csistoragecapacities, storageclasses, volumeattachments]
  verbs: [list, watch]
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, devicetaintrules, resourceclaims, resourceslices]
  verbs: [list, watch]
{{- if include "extender.hasGenericWorkload" . }}
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [list, watch]
{{- end }}
{{- if include "extender.isEnabled" (list .Values.scheduler.featureGates "CompositePodGroup" "AllAlpha") }}
- apiGroups: [scheduling.k8s.io]
  resources: [compositepodgroups]
  verbs: [list, watch]
{{- end }}
{{- if .Values.permissions.coscheduling }}
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [list, watch]
{{- end }}
{{- end -}}

{{/* Authentication and authorization of requests for /metrics and the like. */}}
{{- define "extender.reviewRules" -}}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end -}}

{{/* Whether our process binds pods. kube-scheduler patches no volume, no node, and of a claim only the status. */}}
{{- define "extender.binds" -}}
{{- if or (eq .Values.mode "standalone") (has "bind" .Values.extender.verbs) }}true{{ end -}}
{{- end -}}

{{/* Bindings and the writes of PreBind. */}}
{{- define "extender.bindingRules" -}}
{{- $binds := include "extender.binds" . -}}
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
{{- if and $binds .Values.permissions.volumes }}
- apiGroups: [""]
  resources: [persistentvolumeclaims, persistentvolumes]
  verbs: [patch]
{{- end }}
{{- if .Values.permissions.dynamicResources }}
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [create, delete, get{{ if $binds }}, patch{{ end }}]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/status]
  verbs: [patch]
# The API server checks this permission when an allocation is written to a claim's status.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/binding]
  verbs: [patch]
{{- end }}
{{- if and $binds .Values.permissions.hami }}
# GpuShare locks the node of a pod with HAMi's resources.
- apiGroups: [""]
  resources: [nodes]
  verbs: [patch]
{{- end }}
{{- end -}}

{{/* Other writes of a scheduler: pod status, events, evictions. */}}
{{- define "extender.schedulingRules" -}}
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- if .Values.permissions.preemption }}
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
{{- end }}
{{- if include "extender.hasGenericWorkload" . }}
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups/status]
  verbs: [patch]
{{- end }}
{{- end -}}

{{/* Additional permissions of kube-scheduler in mode `beside`, for all releases since 1.28. */}}
{{- define "extender.kubeSchedulerRules" -}}
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch, update]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [update]
{{- if .Values.permissions.volumes }}
- apiGroups: [""]
  resources: [persistentvolumeclaims, persistentvolumes]
  verbs: [update]
{{- end }}
{{- if .Values.permissions.dynamicResources }}
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [get, update]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/status, resourceclaims/binding]
  verbs: [update]
- apiGroups: [""]
  resources: [pods/finalizers]
  verbs: [update]
{{- end }}
{{- end -}}

{{- define "extender.clusterRules" -}}
{{ include "extender.readingRules" . }}
{{ include "extender.reviewRules" . }}
{{- if and (ne .Values.mode "standalone") (has "bind" .Values.extender.verbs) }}
# The verb bind reads the pod before it binds it.
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
{{- end }}
{{- if eq .Values.mode "service" }}
{{- if has "bind" .Values.extender.verbs }}
{{- if or .Values.permissions.dynamicResources .Values.permissions.gpuShare .Values.permissions.hami }}
# The pod's status names the ResourceClaim for its extended resources. GpuShare patches the status to write annotations.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
{{- end }}
{{ include "extender.bindingRules" . }}
{{- end }}
{{- else }}
{{ include "extender.bindingRules" . }}
{{ include "extender.schedulingRules" . }}
{{- end }}
{{- if eq .Values.mode "beside" }}
{{ include "extender.kubeSchedulerRules" . }}
{{- end }}
{{- with .Values.rbac.extraRules }}
{{ toYaml . }}
{{- end }}
{{- end -}}
