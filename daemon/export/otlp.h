/* SPDX-License-Identifier: Apache-2.0 */
/* Short names for what protoc-c generates from the .proto files. */
#ifndef STACKTAP_EXPORT_OTLP_H
#define STACKTAP_EXPORT_OTLP_H

#include "profiles.pb-c.h"
#include "profiles_service.pb-c.h"
#include "status.pb-c.h"

#define OTLP_(name) Opentelemetry__Proto__Profiles__V1development__##name
#define OTLP_COMMON_(name) Opentelemetry__Proto__Common__V1__##name
#define OTLP_SERVICE_(name) Opentelemetry__Proto__Collector__Profiles__V1development__##name

typedef OTLP_(ProfilesData) OtlpProfilesData;
typedef OTLP_(ProfilesDictionary) OtlpDictionary;
typedef OTLP_(ResourceProfiles) OtlpResourceProfiles;
typedef OTLP_(ScopeProfiles) OtlpScopeProfiles;
typedef OTLP_(Profile) OtlpProfile;
typedef OTLP_(Sample) OtlpSample;
typedef OTLP_(Mapping) OtlpMapping;
typedef OTLP_(Location) OtlpLocation;
typedef OTLP_(Line) OtlpLine;
typedef OTLP_(Function) OtlpFunction;
typedef OTLP_(Stack) OtlpStack;
typedef OTLP_(ValueType) OtlpValueType;
typedef OTLP_(KeyValueAndUnit) OtlpAttribute;
typedef OTLP_COMMON_(AnyValue) OtlpAnyValue;
typedef OTLP_COMMON_(KeyValue) OtlpKeyValue;
typedef OTLP_COMMON_(InstrumentationScope) OtlpScope;
typedef Opentelemetry__Proto__Resource__V1__Resource OtlpResource;
typedef OTLP_SERVICE_(ExportProfilesServiceResponse) OtlpResponse;

/* otlp_init(sample, &message): all fields at their defaults */
#define otlp_init(name, message) \
	opentelemetry__proto__profiles__v1development__##name##__init(message)
#define otlp_common_init(name, message) opentelemetry__proto__common__v1__##name##__init(message)

#define OTLP_DATA_DESCRIPTOR \
	(&opentelemetry__proto__profiles__v1development__profiles_data__descriptor)
#define OTLP_RESPONSE_DESCRIPTOR (&opentelemetry__proto__collector__profiles__v1development__\
export_profiles_service_response__descriptor)

#define OTLP_VALUE_STRING OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE
#define OTLP_VALUE_STRINDEX \
	OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX
#define OTLP_VALUE_BOOL OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BOOL_VALUE
#define OTLP_VALUE_INT OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE

/* Field numbers of what is assembled piece by piece. */
enum {
	OTLP_DATA_RESOURCE_PROFILES = 1,
	OTLP_DATA_DICTIONARY = 2,
	OTLP_RESOURCE_PROFILES_RESOURCE = 1,
	OTLP_RESOURCE_PROFILES_SCOPE_PROFILES = 2,
	OTLP_RESOURCE_PROFILES_SCHEMA_URL = 3,
	OTLP_SCOPE_PROFILES_SCOPE = 1,
	OTLP_SCOPE_PROFILES_PROFILES = 2,
	OTLP_SCOPE_PROFILES_SCHEMA_URL = 3,
	OTLP_PROFILE_SAMPLES = 2,
};

#define OTLP_SCHEMA_URL "https://opentelemetry.io/schemas/1.44.0"

#endif /* STACKTAP_EXPORT_OTLP_H */
