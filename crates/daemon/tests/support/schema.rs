//! Checks values against the schemas of an OpenAPI 3.1 document, and the document
//! against the rules of OpenAPI.
//!
//! It knows the keywords that the document uses and refuses every other one, so
//! that nothing is taken for checked that is not.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The schema that a reference inside the document points to.
pub fn resolve<'a>(document: &'a Value, reference: &str) -> Result<&'a Value, String> {
    let pointer = reference.strip_prefix('#').ok_or(format!("{reference} is not in here"))?;
    document.pointer(pointer).ok_or(format!("{reference} leads nowhere"))
}

/// What is wrong with `value`, and where; nothing where it fits `schema`.
pub fn check(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let schema = schema.as_object().ok_or(format!("{at}: the schema is no object"))?;
    for (keyword, rule) in schema {
        let bad = |why: &str| Err(format!("{at}: {value} {why} {rule}"));
        match (keyword.as_str(), value) {
            ("description" | "examples" | "format", _) => {}
            ("$ref", _) => {
                let target = resolve(document, rule.as_str().ok_or("a $ref that is no text")?)?;
                check(document, target, value, at)?;
            }
            ("type", _) => {
                let types = match rule {
                    Value::Array(types) => types.clone(),
                    one => vec![one.clone()],
                };
                if !types.iter().any(|one| is_of_type(one.as_str().unwrap_or(""), value)) {
                    return bad("is not of type");
                }
            }
            ("enum", _) => {
                if !rule.as_array().is_some_and(|all| all.contains(value)) {
                    return bad("is not one of");
                }
            }
            ("minimum", Value::Number(number)) => {
                if number.as_f64() < rule.as_f64() {
                    return bad("is less than");
                }
            }
            ("minimum", _) => {}
            ("oneOf", _) => {
                let all = rule.as_array().ok_or("a oneOf that is no list")?;
                let fits = all.iter().filter(|one| check(document, one, value, at).is_ok()).count();
                if fits != 1 {
                    return bad(&format!("fits {fits} of"));
                }
            }
            ("items", Value::Array(items)) => {
                for (i, item) in items.iter().enumerate() {
                    check(document, rule, item, &format!("{at}[{i}]"))?;
                }
            }
            ("required", Value::Object(object)) => {
                for name in rule.as_array().ok_or("a required that is no list")? {
                    if !object.contains_key(name.as_str().unwrap_or("")) {
                        return Err(format!("{at}: {name} is missing"));
                    }
                }
            }
            ("properties", Value::Object(object)) => {
                for (name, inner) in rule.as_object().ok_or("properties that are no object")? {
                    if let Some(value) = object.get(name) {
                        check(document, inner, value, &format!("{at}.{name}"))?;
                    }
                }
            }
            ("additionalProperties", Value::Object(object)) => {
                let known = schema.get("properties").and_then(Value::as_object);
                let unknown =
                    object.keys().find(|name| !known.is_some_and(|k| k.contains_key(*name)));
                if let (Some(name), Some(false)) = (unknown, rule.as_bool()) {
                    return Err(format!("{at}: {name} is not known"));
                }
            }
            ("propertyNames", Value::Object(object)) => {
                for name in object.keys() {
                    check(document, rule, &Value::from(name.as_str()), &format!("{at}, a name"))?;
                }
            }
            ("items" | "required" | "properties" | "additionalProperties" | "propertyNames", _) => {
            }
            (unknown, _) => {
                return Err(format!("{at}: the schema has an unknown keyword {unknown}"));
            }
        }
    }
    Ok(())
}

/// As [`check`], and no field beside those that the schema names: what is sent
/// but not described is a hole in the document.
pub fn check_answer(
    document: &Value,
    schema: &Value,
    value: &Value,
    at: &str,
) -> Result<(), String> {
    check(document, schema, value, at)?;
    no_more_than(document, schema, value, at)
}

fn no_more_than(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return no_more_than(document, resolve(document, reference)?, value, at);
    }
    if let Some(all) = schema.get("oneOf").and_then(Value::as_array) {
        let fitting = all.iter().find(|one| check(document, one, value, at).is_ok());
        return no_more_than(document, fitting.ok_or("none fits")?, value, at);
    }
    match (value, schema.get("properties"), schema.get("items")) {
        (Value::Object(object), Some(known), _) => object.iter().try_for_each(|(name, value)| {
            let inner = known.get(name).ok_or(format!("{at}: {name} is not described"))?;
            no_more_than(document, inner, value, &format!("{at}.{name}"))
        }),
        (Value::Array(items), _, Some(inner)) => {
            items.iter().try_for_each(|item| no_more_than(document, inner, item, at))
        }
        _ => Ok(()),
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

/// Where `object` breaks the rules for its kind: a field that must be there and
/// is not, or one that has no meaning there (OpenAPI 3.1.0, section 4.8).
fn fields(
    object: &Value,
    must: &[&str],
    may: &[&str],
    at: &str,
) -> Result<Map<String, Value>, String> {
    let object = object.as_object().ok_or(format!("{at} is no object"))?;
    for name in must {
        object.get(*name).ok_or(format!("{at} has no {name}"))?;
    }
    match object.keys().find(|name| !must.contains(&name.as_str()) && !may.contains(&name.as_str()))
    {
        Some(name) => Err(format!("{at} has a field {name} that has no meaning there")),
        None => Ok(object.clone()),
    }
}

/// What is wrong with an OpenAPI document.
pub fn check_document(document: &Value) -> Result<(), String> {
    let may = ["servers", "components", "tags"];
    let top = fields(document, &["openapi", "info", "paths"], &may, "the document")?;
    if !top["openapi"].as_str().is_some_and(|version| version.starts_with("3.1.")) {
        return Err("not OpenAPI 3.1".into());
    }
    fields(&top["info"], &["title", "version"], &["description", "license"], "info")?;
    fields(&top["info"]["license"], &["name"], &["identifier"], "license")?;
    let components = fields(&top["components"], &["schemas"], &[], "components")?;
    for (name, schema) in components["schemas"].as_object().ok_or("schemas are no object")? {
        check_schema(document, schema, name)?;
        for example in schema.get("examples").and_then(Value::as_array).into_iter().flatten() {
            check_answer(document, schema, example, &format!("the example of {name}"))?;
        }
    }
    let tags: Vec<_> =
        top["tags"].as_array().ok_or("tags are no list")?.iter().map(|tag| &tag["name"]).collect();
    let mut ids = BTreeSet::new();
    for (path, item) in top["paths"].as_object().ok_or("paths are no object")? {
        let methods = fields(item, &[], &["get", "post", "patch", "put", "delete"], path)?;
        for (method, operation) in methods {
            let at = format!("{method} {path}");
            check_operation(document, path, &operation, &at)?;
            if !ids.insert(operation["operationId"].to_string()) {
                return Err(format!("{at}: its operationId is used twice"));
            }
            if !operation["tags"]
                .as_array()
                .is_some_and(|own| own.iter().all(|tag| tags.contains(&tag)))
            {
                return Err(format!("{at}: a tag that is not described"));
            }
        }
    }
    Ok(())
}

fn check_operation(
    document: &Value,
    path: &str,
    operation: &Value,
    at: &str,
) -> Result<(), String> {
    let must = ["tags", "summary", "operationId", "responses"];
    let operation = fields(operation, &must, &["parameters", "requestBody", "description"], at)?;
    let mut declared = BTreeSet::new();
    for parameter in operation.get("parameters").and_then(Value::as_array).into_iter().flatten() {
        let must = ["name", "in", "required", "schema", "description"];
        let parameter = fields(parameter, &must, &[], at)?;
        check_schema(document, &parameter["schema"], at)?;
        if parameter["in"] == "query" && parameter["required"].is_boolean() {
            continue;
        }
        if parameter["in"] != "path" || parameter["required"] != true {
            return Err(format!("{at}: a path parameter that is not required"));
        }
        declared.insert(parameter["name"].as_str().unwrap_or("").to_owned());
    }
    let named = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    if declared != named.map(str::to_owned).collect() {
        return Err(format!("{at}: the parameters {declared:?} are not those of the path"));
    }
    if let Some(body) = operation.get("requestBody") {
        let body = fields(body, &["content"], &["description", "required"], at)?;
        check_content(document, &body["content"], at)?;
    }
    let responses = operation["responses"].as_object().ok_or("responses are no object")?;
    if responses.is_empty() {
        return Err(format!("{at} has no response"));
    }
    for (status, response) in responses {
        let at = format!("{at} {status}");
        if status != "default" && !status.parse().is_ok_and(|code: u16| (100..600).contains(&code))
        {
            return Err(format!("{at}: no status"));
        }
        let response = fields(response, &["description"], &["content"], &at)?;
        if let Some(content) = response.get("content") {
            check_content(document, content, &at)?;
        }
    }
    Ok(())
}

fn check_content(document: &Value, content: &Value, at: &str) -> Result<(), String> {
    for (kind, media) in content.as_object().ok_or("content is no object")? {
        if !kind.contains('/') {
            return Err(format!("{at}: {kind} is no media type"));
        }
        // Bytes are whatever they are.
        let must: &[&str] = if kind == "application/octet-stream" { &[] } else { &["schema"] };
        let media = fields(media, must, &["schema"], at)?;
        if must.is_empty() {
            continue;
        }
        check_schema(document, &media["schema"], at)?;
    }
    Ok(())
}

/// Every keyword is one that [`check`] knows, and every reference leads somewhere.
fn check_schema(document: &Value, schema: &Value, at: &str) -> Result<(), String> {
    let keywords = [
        "$ref",
        "type",
        "enum",
        "minimum",
        "format",
        "description",
        "examples",
        "oneOf",
        "items",
        "required",
        "properties",
        "additionalProperties",
        "propertyNames",
    ];
    let schema = fields(schema, &[], &keywords, at)?;
    if let Some(reference) = schema.get("$ref") {
        resolve(document, reference.as_str().unwrap_or(""))?;
    }
    let known = schema.get("properties").and_then(Value::as_object);
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !known.is_some_and(|known| known.contains_key(name.as_str().unwrap_or(""))) {
            return Err(format!("{at}: {name} is required and not described"));
        }
    }
    let inner = known.into_iter().flat_map(|known| known.values());
    let inner = inner.chain(schema.get("items")).chain(schema.get("propertyNames"));
    let inner = inner.chain(schema.get("oneOf").and_then(Value::as_array).into_iter().flatten());
    inner.into_iter().try_for_each(|inner| check_schema(document, inner, at))
}
